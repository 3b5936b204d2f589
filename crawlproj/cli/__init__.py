"""What commands and the crawl's panel share at the terminal.

`command` is the base class of our commands, with errors, exit codes and JSON: open it first.
`preflight` checks everything before a crawl starts, `screen` draws on the terminal, `summary` and
`next_commands` are what is printed when a crawl has ended, `workers` runs several worker processes
of one crawl, `oneoff` is what Scrapy's own commands for single pages share. The room may use the
database, Scrapy and every room below it. It runs in the main thread of a command; only `Screen` may
be used from several threads.
"""
