"""`scrapy reextract`: a spider's parsing run again on the archive, without the network.

Start with `scheduler` (which captures the spider gets, in which order) and `captures` (which
captures match a request); `addon` turns a crawl's settings into those of such a run. Everything
here is read-only: it reads the archive and, if there is one, the database, and knows Scrapy. All of
it runs on the event loop of one Scrapy process.
"""
