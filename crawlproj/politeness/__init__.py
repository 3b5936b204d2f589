"""Who may be asked, when, and why not. `clocks` says when a host and its server may be asked next,
`robots` and `robotstxt` what robots.txt allows, `guard` and `networks` which addresses are out of
bounds or shared; `audit` judges afterwards, from the request logs (`log_reader`), whether the rules
were kept. All of it is pure: no database, no Scrapy, no thread of its own, and the caller says what
time it is. The event loop runs it, `scrapy politeness` runs the audit.
"""
