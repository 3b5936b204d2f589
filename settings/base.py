"""Every default, with what it is for. crawlproj's own can be set by environment variables, too."""

import os

BOT_NAME = "crawlproj"
SPIDER_MODULES = ["spiders"]
NEWSPIDER_MODULE = "spiders"
COMMANDS_MODULE = "crawlproj.commands"

# --- Where things are ---
DATABASE_URL = ""  # Postgres; empty: our own, in CRAWL_DIR/pg
DATABASE_PATIENCE = "60s"  # a database that is away for longer ends the crawl
# Live bus: URLs pushed to <spider>:start_urls come in, items go out to <spider>:items. Empty: off.
REDIS_URL = ""
REDIS_ITEMS = True  # send items out, if there is a Redis
CRAWL_DIR = ".crawl"
CRAWL_DIR_ABSOLUTE = False  # refuse a relative CRAWL_DIR (Scrapyd)
CRAWL_NAME = ""  # empty: the spider's name
CRAWL_CONTINUOUS = False  # keep running when nothing is due
CRAWL_PATIENCE = "10m"  # wait so long for hosts that rest
CRAWL_SHUTDOWN = "3s"  # what is under way at the end gets so long
# A worker that does nothing else for so long ends: one page hangs it. 0: off, as a debugger needs.
WATCHDOG_TIMEOUT = "30s"

# --- Who we are ---
ROBOT_NAME = "crawlproj"
ROBOT_CONTACT = ""  # mailto: or web page; without it only loopback may be crawled

# --- What may be asked ---
GUARD_ALLOW_PRIVATE = False  # private, loopback and link-local addresses
DNS_HOSTS: dict[str, str] = {}  # static names, wildcards allowed: {"*.test": "127.0.0.1"}
# Links to files with these suffixes are recorded, not followed: a list, "shipped"
# (urls/media_suffixes.txt), or empty: none.
URL_SUFFIXES = "shipped"
FOLLOW_NOFOLLOW = False  # follow links that say rel=nofollow
# Views (AMP, print) and other slugs of an article that is fetched are recorded, not followed.
ARTICLE_KEYS = True
# Crawls of news sites leave out URLs like those of so many pages that were read in vain; 0: none.
BARREN_TRIES = 12
LINKS_PER_PAGE = 20_000  # the first links of a page are taken; of a feed or sitemap 50,000
LINKS_CHARACTERS = 10_000_000  # of these links together, joined with the page's base

# --- Politeness ---
POLITENESS_DELAY = 2  # seconds between two requests to a host
POLITENESS_SERVER_DELAY = 0.5  # seconds between two requests to an address, whatever the host
POLITENESS_HOSTS_PER_SERVER = 4  # hosts of one address at a time, and between two of its rests
POLITENESS_PAUSE_AFTER = 500  # after so many requests to a host its server rests; 0: never
POLITENESS_PAUSE = 300  # seconds of that rest
# Networks where each host is its own server: a list, or "shipped" (politeness/shared_networks.txt).
POLITENESS_SHARED_NETWORKS = "shipped"
POLITENESS_SLOWDOWN = 5  # a host rests so many times its last response time after its end
POLITENESS_MAX_DELAY = 60  # seconds: cap of POLITENESS_SLOWDOWN and of back-off
ROBOTS_TTL = "24h"
ROBOTS_MAX_CRAWL_DELAY = 300

# --- Frontier ---
FRONTIER_ORDER = "best"  # of new pages: best, bfs, dfs
FRONTIER_SHARES = {"new": 0.3, "revisit": 0.4, "backfill": 0.1}  # guaranteed
FRONTIER_DEPTH = 0  # clicks from a seed; 0: no limit
FRONTIER_PAGES = 0  # new pages of the whole crawl; 0: no limit
FRONTIER_BYTES = 0  # bytes of the whole crawl; 0: no limit
FRONTIER_DOMAIN_HOSTS = 500  # hosts below one registered domain that links may add; 0: no limit
FRONTIER_HOST_PAGES = 0  # new pages of each host; 0: no limit
FRONTIER_HOST_BYTES = 0  # bytes of each host; 0: no limit
FRONTIER_LEASE = "120s"
FRONTIER_TENURE = "10m"  # a server that another crawl waits for is given back after so long
FRONTIER_FLUSH = "1s"
FRONTIER_PREPARE = 48  # hosts that are asked for their first robots.txt at a time
FRONTIER_SERVERS = 256  # leased by a worker at a time
FRONTIER_WINDOW = 20  # URLs of a host held in memory, more of a quick one
FRONTIER_KNOWN_URLS = 70_000  # remembered in memory, so that links to them cost nothing
FRONTIER_RETRIES = 3
FRONTIER_RETRY_DELAY = "60s"  # then twice as long each time
FRONTIER_GONE_LIMIT = 3  # visits that find a page gone before it is retired

# --- Revisits ---
REVISIT_POLICY = "optimal"  # optimal, uniform, adaptive, classes or a dotted path
REVISIT_INTERVAL = "5d"  # in the mean; with uniform, of every page
REVISIT_MIN = "12h"  # of pages
REVISIT_MAX = "365d"
REVISIT_BUDGET = ""  # visits per day; empty: what uniform would spend
REVISIT_BETA = 0.0  # optimal: 0 for fresh copies, 1 to 1.25 for as many versions as possible
REVISIT_CLASSES = ["1d", "7d", "182d"]  # classes: the nearest to how often a page changes
REVISIT_INCREASE = 0.2  # adaptive: of an unchanged page's interval
REVISIT_DECREASE = 0.2  # adaptive: of a changed page's interval
REVISIT_SITES: dict[str, dict[str, str]] = {}  # a policy and an interval of their own, by host
REVISIT_ARGS: dict[str, object] = {}  # for a policy of one's own
REVISIT_FRESHNESS_TARGET = 0.9  # above it, requests to spare go to new pages
SOURCE_SILENCE = 6.0  # so many usual gaps without anything new; 0: nobody looks
SOURCE_INTERVAL = "15m"  # first interval of feeds, sitemaps, seeds and roots of hosts
SOURCE_MIN = "5m"  # their shortest; start requests visited within it are not asked again
SOURCE_OLD = "30d"  # pages published longer ago wait in backfill, newest first; 0: none do
REVISIT_WEIGHTS: dict[str, float] = {}  # what a visit to a page of a kind is worth; others: 1
CHANGE_MIN = 10  # letters, or a share below 1, from which a page counts as changed
REVISIT_FILTER = ["html", "feed", "sitemap"]  # kinds of pages that are revisited

# --- Log of requests ---
LOG_REQUESTS = True  # CRAWL_DIR/log/requests-<worker>.jsonl: a line per request or refusal
LOG_REQUESTS_MAX_SIZE = "100MB"  # of a file; then a new part is begun, and ten are kept

# --- Retention: what `scrapy db clean` removes ---
RETENTION_CAPTURES = ""  # captures of pages that are older go, except the last of each; empty: none
RETENTION_KEEP: list[str] = []  # "first", "last": captures of each period that stay as well
RETENTION_PER = "month"  # that period: day, week, month or year
# Nothing older stays: not the last of a page, nor what is hardly worth rewriting a file.
RETENTION_STRICT = False
RETENTION_DEAD = ""  # URLs that were given up so long ago, and never read, go; empty: none
RETENTION_LOGS = ""  # logs that are older go; empty: none

# --- Archive ---
WARC_ENABLED = True  # CRAWL_DIR/warc: every exchange, as WARC/1.1
WARC_MAX_SIZE = "1GB"  # of a file; then the next is begun
WARC_MAX_AGE = "24h"  # of a file; then the next is begun, too
WARC_LEVEL = 0  # of compression, 1 to 12; 0: what is cheap for a record of its size
WARC_OBEY_NOARCHIVE = True  # pages that say noarchive are not archived

# --- Documents ---
DOCUMENTS_ENABLED = True  # text and links of PDF, office and RTF files, in a process of its own
DOCUMENTS_TIMEOUT = "20s"  # for one document; then the process is killed and replaced
DOCUMENTS_MEMORY = "512MB"  # of that process
DOCUMENTS_MAX_SIZE = "20MB"  # bigger ones are archived, but not read
DOCUMENTS_MAX_WAITING = "32MB"  # all that wait for that process; then the biggest come later

# --- Text and duplicates ---
TEXT_ENABLED = True  # the text of each page is kept in the database; languages are found with it
LANGUAGE_ENABLED = True  # of each text, in a process of its own
DUPLICATES_ENABLED = True  # same bytes or same text as another page
NEARDUP_ENABLED = True  # almost the same text (MinHash, checked on the stored texts)
NEARDUP_THRESHOLD = 0.95  # how much of two texts must be the same, 0.5 to 1
NEARDUP_NUM_PERM = 128  # permutations of the signature; a multiple of 8
NEARDUP_SHINGLE = 3  # words that are compared together
PARAGRAPH_ENABLED = True  # the same paragraphs in another frame
PARAGRAPH_THRESHOLD = 0.9  # how much of a page's long paragraphs must be known from other pages
DUPLICATE_SCOPE = "crawl"  # compared are pages of a site, of a crawl, or all
DUPLICATE_KEEP = "canonical"  # which copies become articles and are exported: canonical, all
DUPLICATE_ITEMS = "keep"  # items of a page that is a copy: keep, drop

# --- Articles ---
ARTICLE_PROCESSES = 1  # processes that take articles from pages, beside the crawl; 0: none
ARTICLE_LABELS = ""  # dotted path of a function: an article in, labels out

# --- Panel ---
PANEL = "auto"  # auto, live, lines, log, off
PANEL_INTERVAL = "5s"  # between two lines

SCRAPYS = ("BOT_NAME", "SPIDER_MODULES", "NEWSPIDER_MODULE", "COMMANDS_MODULE")
OURS = frozenset(name for name in dir() if name.isupper() and name not in (*SCRAPYS, "SCRAPYS"))
"""crawlproj's own settings: documented, and open to the environment."""

# --- Scrapy ---
ADDONS = {"crawlproj.addon.ProjectAddon": 0}  # merges what spiders set with what is here
SCHEDULER = "crawlproj.scheduling.scheduler.CrawlScheduler"
DUPEFILTER_CLASS = "scrapy.dupefilters.BaseDupeFilter"
DOWNLOADER = "crawlproj.extensions.overrides.DirectDownloader"
ITEM_PROCESSOR = "crawlproj.extensions.overrides.DirectItems"
STATS_CLASS = "crawlproj.extensions.overrides.DirectStats"
TWISTED_REACTOR_ENABLED = False
ASYNCIO_EVENT_LOOP = "uvloop.Loop"
DOWNLOAD_HANDLERS = {
    "http": "crawlproj.fetch.handler.GuardedHandler",
    "https": "crawlproj.fetch.handler.GuardedHandler",
    "data": None,
    "file": None,
    "ftp": None,
    "s3": None,
}
CONCURRENT_REQUESTS = 128
CONCURRENT_REQUESTS_PER_DOMAIN = 1
CONCURRENT_ITEMS = 1  # Scrapy starts so many tasks per response
DOWNLOAD_DELAY = 0  # pauses are the scheduler's; a longer one of a spider's own is kept by it
DOWNLOAD_TIMEOUT = 60
DOWNLOAD_MAXSIZE = 10 * 1024 * 1024
DOWNLOAD_WARNSIZE = 0
# Scrapy would stop fetching while that many bytes of responses wait to be read. Big ones have their
# own limit (crawlproj/fetch/big_bodies.py), and nothing else waits for them.
SCRAPER_SLOT_MAX_ACTIVE_SIZE = 1_000_000_000
REDIRECT_MAX_TIMES = 20
ROBOTSTXT_OBEY = False  # ours does, see middlewares/robots.py
# Both run code that is sent to a port.
TELNETCONSOLE_ENABLED = False
REMOTE_CONTROL_ENABLED = False

DOWNLOADER_MIDDLEWARES = {
    # The frontier's business: a redirect, a retry, a refusal is the end of a visit.
    "scrapy.downloadermiddlewares.robotstxt.RobotsTxtMiddleware": None,
    "scrapy.downloadermiddlewares.retry.RetryMiddleware": None,
    "scrapy.downloadermiddlewares.redirect.MetaRefreshMiddleware": None,
    "scrapy.downloadermiddlewares.redirect.RedirectMiddleware": None,
    # We have our own: ROBOT_NAME and ROBOT_CONTACT, and middlewares.unpacking.
    "scrapy.downloadermiddlewares.useragent.UserAgentMiddleware": None,
    "scrapy.downloadermiddlewares.httpcompression.HttpCompressionMiddleware": None,
    # Not of use to the general spiders, and each costs time for every page. Ordinary ones have them
    # (crawlproj/addon.py), and cookies and referers, too.
    "scrapy.downloadermiddlewares.offsite.OffsiteMiddleware": None,
    "scrapy.downloadermiddlewares.httpauth.HttpAuthMiddleware": None,
    "scrapy.downloadermiddlewares.httpproxy.HttpProxyMiddleware": None,
    "scrapy.downloadermiddlewares.stats.DownloaderStats": None,
    "middlewares.guard.GuardMiddleware": 100,
    "middlewares.robots.RobotsMiddleware": 200,
    "middlewares.identity.IdentityMiddleware": 500,
    "middlewares.conditional.ConditionalMiddleware": 560,
    "middlewares.unpacking.UnpackingMiddleware": 590,
    "middlewares.politeness.PolitenessMiddleware": 950,  # last before the network
}
SPIDER_MIDDLEWARES = {
    "scrapy.spidermiddlewares.depth.DepthMiddleware": None,  # the frontier knows the depth
    "scrapy.spidermiddlewares.referer.RefererMiddleware": None,
    "scrapy.spidermiddlewares.urllength.UrlLengthMiddleware": None,
    "scrapy.spidermiddlewares.metacopy.MetaCopyDetectionMiddleware": None,
    "middlewares.pages.PagesMiddleware": 10,  # sees what all others let through
}
ITEM_PIPELINES = {
    "pipelines.dedup.DedupPipeline": 200,
    "pipelines.warc.WarcPipeline": 300,
    "pipelines.store.StorePipeline": 400,
    "pipelines.revisit.RevisitPipeline": 900,
    "pipelines.bus.BusPipeline": 950,  # does nothing without REDIS_URL
}
EXTENSIONS = {
    "scrapy.extensions.logstats.LogStats": None,  # the panel says more
    "scrapy.extensions.throttle.AutoThrottle": None,
    "scrapy.extensions.closespider.CloseSpider": None,
    "crawlproj.extensions.closespider.CloseCrawl": 0,
    "crawlproj.extensions.panel.Panel": 500,
    "crawlproj.extensions.worker_report.WorkerReport": 500,  # of `scrapy workers` only
    "scrapy.extensions.feedexport.FeedExporter": None,
    "crawlproj.extensions.feedexport.ItemFeeds": 0,
}
LOG_LEVEL = "INFO"
LOG_FORMATTER = "crawlproj.extensions.logformatter.QuietFormatter"

globals().update({name: os.environ[name] for name in OURS if name in os.environ})
