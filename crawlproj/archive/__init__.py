"""The archive: WARC files that any tool can replay, and their indexes (CDXJ).

Open `reader.py` first (`Archive`: every version of a page, by URL and time), then `writer.py` (the
thread that writes) and `records.py` (the bytes of a WARC record). `recovery.py` repairs what a kill
left, `removal.py` takes pages out, `check.py` finds damage; `foreign/` reads files of other tools.
Nothing here touches the database or Scrapy. `WarcWriter` has a thread of its own; everything else
runs in the thread that calls it, in crawls as well as in commands. Processes that share a folder
keep apart by the locks of `locks.py`.
"""

from crawlproj.archive.reader import Archive, Capture

__all__ = ["Archive", "Capture"]
