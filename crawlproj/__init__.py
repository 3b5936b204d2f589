"""What we know about crawling: free of Scrapy except where a module says so."""
