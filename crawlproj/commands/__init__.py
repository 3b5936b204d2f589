"""`scrapy NAME`: one module per command, and nothing but commands in here; what they share is in
`crawlproj.cli.command`.
"""
