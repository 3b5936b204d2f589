"""The frontier: every URL ever seen, what came of it, and which ones are due.

Open `base` first: the Protocol with its rules and values, and how to add a field. `postgres` is the
real one (with `leases`, `rows`, `outlook`, `rejudge`, and `writes`, which stores URLs, ends, pages
and their versions), `memory` a second one for tests and simulators; `quotas` and `host_limits` are
rules that both share. `seen` and `clock` are what a worker needs beside it, `takedown` has the
rules of what is forgotten, `opening` is for commands. Nothing here knows Scrapy. Queries go through
`crawlproj.database`; they block, so a running crawl calls the frontier from its database thread
only, while `seen` and `clock` live in the event loop.
"""
