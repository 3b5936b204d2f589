"""One running worker: what is handed out next, and the thread that talks to the database.

Open `crawl_worker` first: it owns the parts, and middlewares, pipelines and extensions ask nothing
else. `scheduler` is what Scrapy's engine calls, `scoped_spider` the base of the general spiders;
apart from them, `stopping` and `redirects` nothing here touches Scrapy. `dispatcher` decides what
goes out next, out of the `window` that `worker_leases` keeps filled: how many servers are held, and
given to other workers (`sharing`). `visits` ends a visit: `outcomes` decides its state (a 410 is
gone, a redirect has moved, a failure is tried again), `redirects` makes the target of a redirect a
new URL. `database_thread` commits, renews leases, sends the heartbeat; `retrying` is what happens
while the database is away or a disk is full. What is in memory belongs to the event loop, what is
in the database to the database thread; they exchange `messages`.

| module                                | runs on                                              |
|---------------------------------------|------------------------------------------------------|
| scheduler, crawl_worker, dispatcher   | event loop                                           |
| window, worker_leases                 | event loop; window is pure                           |
| robots_lifecycle, moved_robots        | event loop                                           |
| visits, outcomes, redirects           | event loop; outcomes is pure                         |
| request_log, noarchive, spider        | event loop                                           |
| scoped_spider                         | event loop; made once on trial before it starts      |
| snapshot, stopping, memory_tuning         | event loop                                           |
| database_thread, retrying             | database thread                                      |
| notifications                         | database thread, once it has started                 |
| messages                              | filled on one side, read on the other, never at once |
| archiver                              | both: pages from the event loop, the rest from the   |
|                                       | database thread; a lock is between them              |
| sharing, worker                       | both; pure, or asking only the machine               |
| redis/                                | a thread of its own, if there is a Redis             |
"""
