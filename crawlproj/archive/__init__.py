"""The archive: WARC files that any tool can replay, and every version of a page read back from
them.
"""

from crawlproj.archive.reader import Archive, Capture

__all__ = ["Archive", "Capture"]
