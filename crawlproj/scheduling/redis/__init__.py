"""Redis: URLs come in, items go out while a crawl runs. Imported only if a Redis is configured.
`thread` is the one to open first: a thread of its own, which talks to Redis through `connection`,
takes pushed URLs from `push_queue`, and commits them to a frontier with a database connection of
its own. `push_format` says what a push means, and runs on the event loop, since spiders may have
methods for it. Only this room imports redis and scrapy-redis, but for `pipelines/bus.py`, which
starts it.
"""
