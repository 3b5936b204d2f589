"""HTTP as bytes: heads, framing, content encodings, and what a status means.

Open `heads.py` first (heads as they are stored), then `framing.py` (how long a body is) and
`encodings.py` (bodies without their Content-Encoding). `limited_body.py` stops decompression bombs
on the way in, `status.py` sorts status codes and parses Retry-After. All of it is pure: it imports
nothing of ours, knows neither Scrapy nor a database, and runs in whichever thread calls it.
"""
