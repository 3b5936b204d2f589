"""Text and links of PDF, office and RTF files, read in a process of their own.

`reader_process` is what the crawl uses: it starts, feeds and replaces the process, on the event
loop. `reader_main` is what runs in that process: it picks the reader by `formats` (`pdf`, `ooxml`,
`odf`, `ole` with `doc`, `xls` and `ppt`, `rtf`), which fills a `result`. `reply` checks what comes
back, `package` opens zip files without falling for bombs. Open `reader_process` and `reader_main`
first. The files are strangers' and the libraries are big, so nothing of them is trusted: the
process has little memory and time (`budget`), no files and no network (`sandbox`). No database, no
Scrapy.
"""
