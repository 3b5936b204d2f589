"""Where Scrapy calls us on the way to the network and back."""
