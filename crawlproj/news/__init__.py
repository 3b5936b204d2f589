"""How a person states a news site: as a spider of a few lines, or as an entry of a file.

`spider` has the base class of such spiders: open it first. `sites` reads the same from YAML, for
hundreds of sites without code; `yaml_file` is what it needs to say of every mistake where it is.
Both give `SiteRules` (`crawlproj.urls.rules`), which is all that the rest of a crawl sees.
`templates/` holds what `scrapy genspider` offers beside Scrapy's own. All of it runs once, when a
spider is made, on the main thread.
"""
