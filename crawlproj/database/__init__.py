"""Postgres: a connection, named queries, migrations, and a server of our own.

Open `connection` (Database and its transactions) and `sql/queries/` (all SQL by name, read by
`queries`) first; `sql/schema.sql` has the tables, `migrations` makes them, `opening` finds or
starts the server. This is the only importer of psycopg2; its Python knows no table but `migration`
and imports nothing of ours but `errors`. A Database may be used from any thread; threads take
turns. In a worker that is the database thread, while the thread of `watchdog` cuts a connection
that has fallen silent.
"""
