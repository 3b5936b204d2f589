"""When to come back: revisit policies behind one small interface, and the shares between new pages
and revisits.

Open `base` first (what a policy is given and returns), then `optimal` (the default), `rates` (what
a visit teaches of a page), `price` (how all visits together keep to the budget) and `policies`
(which policies there are, and what is done with each visit); `shares` divides the requests of a
worker.
Pure: no database, no Scrapy, no thread, and no clock but what is passed in. A running crawl calls
it from its event loop, the import of archives from a command.
"""
