"""Workers on many machines: all of them need the same DATABASE_URL."""

from settings.base import *  # noqa: F403

FRONTIER_LEASE = "120s"
