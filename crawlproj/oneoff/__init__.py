"""Commands that ask for single pages, without a crawl: `scrapy shell`, `fetch`, `parse`, `view`,
`check` and `bench`. `mode` changes the settings of such a command: Scrapy's own queue in memory
instead of the frontier, redirects followed by Scrapy's middleware, and nothing that stores.
`polite_hosts` keeps guard, robots.txt and clocks all the same, for as long as the command runs.
Nothing is written anywhere, and no database is opened. All of it runs on the event loop.
"""
