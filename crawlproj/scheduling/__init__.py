"""One running worker: what is handed out next, and the thread that talks to the database.

Open `crawl_worker` first: it owns the parts, and middlewares, pipelines and extensions ask nothing
else. `scheduler` is what Scrapy's engine calls; apart from it, `stopping` and `redirects` nothing
here touches Scrapy. What is in memory belongs to the event loop, what is in the database to the database thread; they
exchange `messages`.

| Where it runs | Modules |
|---|---|
| event loop | scheduler, crawl_worker, dispatcher, window, worker_leases, robots_lifecycle, \
moved_robots, visits, redirects, request_log, snapshot, stopping, gc_tuning |
| database thread | database_thread, retrying, notifications |
| both | messages (filled on one side, read on the other), archiver (behind a lock) |
| pure, no thread of its own | outcomes, sharing, noarchive, spider, worker |

`redis` is the optional bus, with a thread of its own.
"""
