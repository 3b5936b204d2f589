"""One machine: our own Postgres unless DATABASE_URL names another."""

from settings.base import *  # noqa: F403
