"""Scrapy's pipelines: each Page is kept (`warc`, `store`), then its visit ends (`revisit`).

They run on the event loop in the order of the numbers in `settings/base.py`, ask the worker
(`scheduling.scheduler.worker_of`) and never import each other. What they keep is stored by the
database thread and by the archive's writer; only `bus` has a connection and a thread of its own.
"""
