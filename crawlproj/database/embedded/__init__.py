"""A Postgres server of our own, from a pip package, for when no DATABASE_URL is given.

Open `server` first: EmbeddedPostgres is what others use; it holds file locks, so that several
processes share one server and the last one stops it. `cluster` runs the server on its data folder,
`account` chooses the user it runs as, `postmaster` and `lock_holders` look at processes from
outside. No psycopg2, no Scrapy; programs and signals only, in whichever thread calls.
"""
