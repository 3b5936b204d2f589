"""Postgres: connection, named queries, migrations, the embedded server. The only importer of
psycopg2.
"""
