"""Under Scrapyd: jobs start in a folder of Scrapyd's, so paths must be absolute; the log is
Scrapyd's, with a line of progress every minute.
"""

from importlib import import_module

from settings.base import *  # noqa: F403

# The first that Scrapyd loads of our egg: here it is said what its Python lacks.
import_module("crawlproj.install_check").check_egg(__file__)

CRAWL_DIR_ABSOLUTE = True
PANEL = "log"
PANEL_INTERVAL = "60s"
