"""Revisit policies tried on made-up pages, in virtual time: the same code that a crawl runs.

Open `table` first (which policies on which pages, and what is measured), then `populations` (pages
that change in different ways), `crawler` (the virtual clock that drives the policy) and `oracle`
(what could be reached by one who knows all). Pure: no database, no Scrapy, no clock but a virtual
one. Called by the command `scrapy simulate` and by tests.
"""
