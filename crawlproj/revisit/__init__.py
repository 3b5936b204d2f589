"""When to come back: policies behind one small interface, and the shares between new pages and
revisits.
"""
