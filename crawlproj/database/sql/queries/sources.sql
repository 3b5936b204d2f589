-- Sources: where new pages are found, and whether they still bring some.
-- The first ones are asked by crawlproj/scheduling/source_watch.py in the database thread every few minutes, the others by
-- crawlproj/reports/sources.py and crawlproj/articles/delays.py.

-- name: watched_sources
-- Sources of a crawl site by site, from one on, and how the last visit to each ended; every few minutes, and for scrapy sources.
select s.url as id, u.canonical as url, s.kind, s.site, s.title, s.first_visit, s.last_visit, s.visits, s.entries, s.new_links, s.last_new,
    s.gap_s, s.newest, s.silent_since, s.problem, u.state, u.status, u.why, u.tries, u.next_visit, u.interval_s
from source s join url u on u.id = s.url
where s.crawl = %(crawl)s and s.site > %(after)s order by s.site, s.url limit %(count)s;

-- name: source_times
-- When a source has brought something, as far as versions of it are kept, the latest first; of the few that may be silent.
select at from page_version where url = %(id)s and at > %(since)s order by at desc limit %(count)s;

-- name: dead_sitemaps
-- Of each sitemap index: how many of the sitemaps that it names were asked, and how many of these are dead; as watched_sources.
select l.url, count(*), count(*) filter (where u.state in ('gone', 'retired', 'dead', 'forbidden') or (u.state = 'retry' and u.tries > 2))
from page_links l join url u on u.id = any (l.known[1:1000]) and u.visit > 0
where l.url = any (%(ids)s::bigint[]) group by l.url;

-- name: note_sources
-- Notes which sources are silent and what is odd about them, but for those that another worker has just noted; as watched_sources.
update source s set silent_since = n.silent_since, problem = n.problem
from (
    select s.url, n.silent_since, n.problem
    from unnest(%(id)s::bigint[], %(before)s::timestamptz[], %(silent_since)s::timestamptz[], %(problem)s::text[])
        as n (id, before, silent_since, problem)
        join source s on s.url = n.id and s.silent_since is not distinct from n.before
    order by s.url for no key update of s) n
where s.url = n.url
returning s.url;

-- name: count_silent
-- How many sources of a crawl are silent; when a worker ends.
select count(*) from source where crawl = %(crawl)s and silent_since is not null;

-- name: silent_sources
-- Some of the silent sources of a crawl, the latest first; when a worker ends.
select u.canonical from source s join url u on u.id = s.url where s.crawl = %(crawl)s and s.silent_since is not null
order by s.silent_since desc limit %(count)s;

-- name: status_sources
-- Sources of each crawl, and how many of them are silent; for scrapy status.
select c.id, c.name, count(s.url), count(s.silent_since) from crawl c left join source s on s.crawl = c.id group by c.id, c.name;

-- name: sites_known
-- Since when a crawl knows each of its sites, and since when it is there itself; for delays.
select s.site, min(s.first_visit) from source s where s.crawl = %(crawl)s group by s.site
union all select '', created from crawl where id = %(crawl)s;

-- name: dated_articles
-- Articles that were found of late, the latest first, and when each was published by its page and by what listed it; for delays.
select u.canonical, a.date, u.published, least(a.at, a.found_at) as fetched
from article a join url u on u.id = a.page
where a.crawl = %(crawl)s and a.changed_at >= %(since)s and a.found_at >= %(since)s
order by a.changed_at desc limit %(count)s;

-- name: report_crawl_began
-- When a crawl was made; for scrapy sources.
select created from crawl where id = %(crawl)s;

-- name: report_useful
-- Fetches of a crawl in a day, and how many of them brought an article; for scrapy sources.
select coalesce(sum(fetches), 0)::bigint, coalesce(sum(useful), 0)::bigint from crawl_stat
where crawl = %(crawl)s and at > %(since)s;

-- name: status_has_workers
-- Whether a worker of a crawl lives; for scrapy seeds add.
select exists (select from worker w join crawl c on c.id = w.crawl where c.name = %(name)s and w.until > now());
