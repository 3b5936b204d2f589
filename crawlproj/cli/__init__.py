"""What commands and the panel share: errors and exit codes, checks before a crawl, the screen."""
