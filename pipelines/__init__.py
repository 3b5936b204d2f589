"""Where Scrapy calls us with each Page: keep it, then say when to come back."""
