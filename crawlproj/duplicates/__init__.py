"""Which pages say the same: near duplicates, and paragraphs that are known.

Open `compare` first: what of a page is judged, how alike two pages are, and whether they only share
a frame. `words` turns text into hashes of words and of runs of words; `minhash` makes the numbers
by which pages like this one are looked up (candidates, which `compare` then judges); `paragraphs`
makes one number per paragraph. docs/duplicates.md says why it is decided so.
Pure: no database, no Scrapy, no thread, no clock. All of it is called for new texts only, and costs
microseconds; any text gives an answer, in time that grows with its length up to a limit.
"""
