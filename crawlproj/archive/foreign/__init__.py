"""WARC and ARC files of other tools: read, checked, imported. Used by `scrapy warc import` and
`check` only.
"""
