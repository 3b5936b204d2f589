"""HTTP as bytes: heads, framing, content encodings, what a status means. Pure; imports nothing of
ours.
"""
