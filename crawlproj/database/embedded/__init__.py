"""The pip-installed Postgres: made, started, shared by processes, stopped."""
