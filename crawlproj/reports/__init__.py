"""Reports: what people ask of a crawl, answered by reading only.

`facts` collects values for `scrapy status` and `scrapy explain`, `explain` puts them into
sentences, `plan` forecasts the next URLs, `versions` finds and compares captures of a page, and
`robot_page` makes the page for webmasters. Open `facts` first. The room reads the database and the
archive and never writes; it knows no Scrapy. Commands run it in their only thread.
"""
