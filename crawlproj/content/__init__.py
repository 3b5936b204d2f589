"""Bytes to text and links.

`html` reads a page into the values of `document`: open those two first. In that one parse
`html_target` is what lxml calls for each tag, and `html_elements` says what each element means (`<a
href>`, `<img>`, `<meta>`). `charset` decides what the bytes mean, `feeds` tells the kind of a body
and reads feeds and sitemaps, `robots_directives` reads meta robots and X-Robots-Tag, `script_urls`
and `text_urls` find URLs in code and in plain text; `documents` reads PDF, office and RTF files.
`changes` judges whether a page has changed since its last captures: `page_blocks` is what it
compares, `page_state` what is kept, `host_noise` what is known of the host.
The room is pure: no database, no Scrapy, no clock; only `documents` starts a process. It runs on
the crawl's event loop for every page, and in commands, so it is written for speed.
"""
