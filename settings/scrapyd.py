"""Under Scrapyd: jobs start in a folder of Scrapyd's, so paths must be absolute; the log is
Scrapyd's, with a line of progress every minute.
"""

from crawlproj.install_check import check_egg
from settings.base import *  # noqa: F403

check_egg(__file__)

CRAWL_DIR_ABSOLUTE = True
PANEL = "log"
PANEL_INTERVAL = "60s"
