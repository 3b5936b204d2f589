"""Benchmarks: speed and memory, mostly as ratios of two things measured in turn in one run, since
times of a shared machine say little. Start with `cost` (CPU per page against bare Scrapy, with the
floors of `floors.json`), `parse` (reading a page) and `growth` (databases of different sizes); each
module's first lines say how to run it. `fill`, `madeup`, `rounds` and `meter` are parts of others.
Nothing in crawlproj imports them; `growth`, `bloat`, `plans` and `fill` start a Postgres of their
own, and some need the tests' helpers or a web that is not part of the project (BENCH_DIR).
"""
