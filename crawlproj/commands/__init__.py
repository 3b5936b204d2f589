"""`scrapy NAME`: one module per command, which reads its words, calls the room that does the work,
and prints what came of it.

Open the module with the name of the command; what commands share (exit codes, JSON, errors) is in
`crawlproj.cli.command`. Nothing but commands may live here: Scrapy takes every class of this
package that is derived from its own command class for a command. A command may import any room. It
runs in the main thread; `crawl`, `demo`, `reextract`, `fetch` and its like start Scrapy's event
loop there, `shell` starts it in a thread of its own.
"""
