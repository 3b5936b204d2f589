"""WARC and ARC files of other tools: read, checked and imported, however damaged they are.

Open `importer.py` first (files into our archive), then `reader.py` (records as exchanges);
`scanner.py` finds records behind damage, `streams.py` decompresses, `revisits.py` finds what
revisits point at. Only `scrapy warc import` and `scrapy warc check` use it, in their main thread;
it touches neither the database nor Scrapy.
"""
