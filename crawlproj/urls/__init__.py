"""What a URL is, and whether a crawl wants it.

`canonical` gives the one spelling of a URL, its host, origin and key: open it first. `scope` reads
seeds and decides which URLs belong to a crawl; `rules` is what a person says of a site and its
URLs; `domains` finds the domain that somebody registered. The room is pure: no database, no Scrapy,
no thread; only `scope` reads a file of seeds. It runs wherever URLs are handled, for every link of
every page, so `canonical` is written for speed.
"""
