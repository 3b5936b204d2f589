"""Articles as they are stored: one row for each, with all addresses that it has.

Open `same` first: when two pages of a site have the same article. `store` is the queue of pages
that wait and the table of articles, on Postgres; it is used by the threads of
scheduling/article_threads.py, never by the event loop or the database thread. How an article is
taken from a page is content/articles.py.
"""
