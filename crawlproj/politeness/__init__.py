"""Who may be asked, when, and why not: clocks, robots.txt, the guard, and the auditor of the
request logs.
"""
