-- Sources: where new pages are found, and whether they still bring some.
-- The first ones are asked by crawlproj/scheduling/source_watch.py in the database thread every few minutes, the others by
-- crawlproj/reports/sources.py and crawlproj/articles/delays.py.

-- name: watched_sources
-- Sources of a crawl site by site, from one on, and how the last visit to each ended.
-- Every few minutes, and for scrapy sources.
select s.url as id, u.canonical as url, s.kind, s.site, s.title, s.first_visit, s.last_visit, s.visits, s.entries, s.new_links, s.last_new,
    s.gap_s, s.newest, s.silent_since, s.problem, s.missed, u.state, u.status, u.why, u.tries, u.next_visit, u.interval_s
from source s join url u on u.id = s.url
where s.crawl = %(crawl)s and s.site > %(after)s order by s.site, s.url limit %(count)s;

-- name: source_times
-- When a source has brought something, the latest first; of the few that may be silent.
-- As far as versions of it are kept.
select at from page_version where url = %(id)s and at > %(since)s order by at desc limit %(count)s;

-- name: dead_sitemaps
-- Of each sitemap index: how many of its sitemaps were asked, and how many of these are dead.
-- As watched_sources.
select l.url, count(*), count(*) filter (where u.state in ('gone', 'retired', 'dead', 'forbidden') or (u.state = 'retry' and u.tries > 2))
from page_links l join url u on u.id = any (l.known[1:1000]) and u.visit > 0
where l.url = any (%(ids)s::bigint[]) group by l.url;

-- name: note_sources
-- Notes which sources are silent and what is odd about them; as watched_sources.
-- But for those that another worker has just noted.
update source s set silent_since = n.silent_since, problem = n.problem, missed = n.missed
from (
    select s.url, n.silent_since, n.problem, n.missed
    from unnest(%(id)s::bigint[], %(before)s::timestamptz[], %(silent_since)s::timestamptz[], %(problem)s::text[],
        %(missed)s::int[]) as n (id, before, silent_since, problem, missed)
        join source s on s.url = n.id and s.silent_since is not distinct from n.before
    order by s.url for no key update of s) n
where s.url = n.url
returning s.url;

-- name: count_missing
-- How many sources of a crawl are silent, and how many list nothing of what others bring; when a worker ends.
-- With what they have missed, and the latest of each.
select count(s.silent_since), count(*) filter (where s.silent_since is null), coalesce(sum(s.missed), 0)::bigint,
    (array_agg(u.canonical order by s.silent_since desc) filter (where s.silent_since is not null))[1],
    (array_agg(u.canonical order by s.missed desc) filter (where s.silent_since is null))[1]
from source s join url u on u.id = s.url where s.crawl = %(crawl)s and (s.silent_since is not null or s.missed > 0);

-- name: status_sources
-- Sources of each crawl: how many are silent, or list nothing of what others bring; for scrapy status.
-- And what these have missed.
select c.id, c.name, count(s.url), count(s.silent_since), count(*) filter (where s.silent_since is null and s.missed > 0),
    coalesce(sum(s.missed), 0)::bigint from crawl c left join source s on s.crawl = c.id group by c.id, c.name;

-- name: sites_known
-- Since when a crawl knows each of its sites, and since when it is there itself; for delays.
select s.site, min(s.first_visit) from source s where s.crawl = %(crawl)s group by s.site
union all select '', created from crawl where id = %(crawl)s;

-- name: report_article_hosts
-- Articles that were found of late, by host; for scrapy sources.
select h.name, count(*) from article a join url u on u.id = a.page join host h on h.id = u.host
where a.crawl = %(crawl)s and a.changed_at >= %(since)s and a.found_at >= %(since)s group by h.name;

-- name: dated_articles
-- Articles that were found of late, and when each was published by its page and by what listed it; for delays.
-- Some of them, drawn by lot, if they are very many.
-- Ids are hashes, so the remainder of a division draws by lot.
with lately as materialized (
    select page, date, least(at, found_at) as fetched, found_at from article
    where crawl = %(crawl)s and changed_at >= %(since)s and found_at >= %(since)s
), every as (
    select greatest(1, ceil(count(*)::numeric / %(count)s))::bigint as nth from lately
)
select u.canonical, l.date, u.published, l.fetched, l.found_at
from lately l cross join every e join url u on u.id = l.page
where l.page %% e.nth = 0;

-- name: source_kinds
-- Sources of a crawl by kind, the most frequent first; when a worker ends.
select kind, count(*) from source where crawl = %(crawl)s and kind not like 'former %%' group by kind order by count(*) desc, kind;

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
