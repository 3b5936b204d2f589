"""The frontier in memory: it passes the same contract suite as the one on Postgres, so that tests
and simulators need no database.

Open `frontier` first (the Protocol's methods), then `rows` (what is stored) and `crawl` (the rules
of a commit); `leases` and `store` are what the crawls of one "database" share. No database, no
Scrapy, no thread of its own; nothing of a running crawl imports it.
"""
