"""What a URL is: its canonical form, its host and key, its registered domain, whether a crawl wants
it. Pure.
"""
