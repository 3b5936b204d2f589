"""Under Scrapyd: jobs start in a folder of Scrapyd's, so paths must be absolute; the log is
Scrapyd's.
"""

from settings.base import *  # noqa: F403

CRAWL_DIR_ABSOLUTE = True
PANEL = "off"
