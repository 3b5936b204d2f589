"""Scrapy's spiders: one file per site; `site` is the general one.

A spider may import crawlproj, but no middleware or pipeline; what it may offer beyond Scrapy's own
Spider is in crawlproj/scheduling/spider.py. It runs on the event loop.
"""
