"""The network: requests go out here, and every response or failure comes back as a Page.

Open `handler` first (the download handler that Scrapy calls) and `pages` (what came, as a Page).
`wire` keeps what really went over the wire, `requests` turns tickets into Scrapy's requests, and
these into JSON, `documents` has PDF and such read by another process, `resolver` finds the servers
of names. How big a body may be is DOWNLOAD_MAXSIZE in `settings/base.py`; no code of ours keeps it,
but Scrapy's: the parent class of `handler` counts what comes over the network, the parent class of
`middlewares/unpacking.py` what a body decompresses to, so that bombs stop there. This room knows
Scrapy, and alone imports aiohttp; it never touches the database. All of it runs on the event loop,
but for `resolver`: the database thread calls it, and its look-ups have threads of their own.
"""
