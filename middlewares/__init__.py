"""Scrapy's middlewares: one small class a file, called on the way to the network and back.

They run on the event loop, decide nothing that the worker knows (`scheduling.scheduler.worker_of`),
never touch the database and never import each other; `settings/base.py` has their order. `pages` is
the spider middleware, the others are downloader middlewares: guard, robots and politeness are asked
just before a request goes out.
"""
