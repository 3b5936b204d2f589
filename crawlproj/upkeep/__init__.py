"""Work on a whole database together with its archive, for the commands `forget`, `db clean` and
`warc import`.

Start with `takedown` (remove a URL or a host for good) and `clean` (remove what is too old);
`retention` decides what is too old and is pure, `warc_rewrite` takes records out of WARC files
while crawls run, `imported_history` makes a crawl know imported pages. It reads and writes the
database and the archive and knows neither spiders nor commands. It runs in the main thread of a
command; crawls may run at the same time in other processes.
"""
