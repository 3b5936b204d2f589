"""A Scrapy project of somebody else, which has never heard of crawlproj; tests copy it elsewhere
and let it join.
"""
