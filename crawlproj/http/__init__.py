"""HTTP as bytes: heads, framing, content encodings, and what a status means.

Open `status.py` first (which statuses mean gone, forbidden, try again; Retry-After parsed), then
`heads.py` (heads as they are stored), `framing.py` (how long a body is) and `encodings.py` (bodies
without their Content-Encoding, up to a size). `limited_body.py` reads the first bytes of a body,
even of a bomb; only robots.txt is cut like that, bodies of pages are limited by Scrapy (see
`crawlproj.fetch`). All of it is pure: it imports nothing of ours, knows neither Scrapy nor a
database, and runs in whichever thread calls it.
"""
