-- What the revisits of a crawl share: prices, and how fresh the copies are. Asked by crawlproj/scheduling/revisit_budget.py, in the database thread.

-- name: move_prices
-- Multiplies the prices of a crawl by what a worker has moved them; after turns that planned visits.
-- No row while another worker has the crawl's: nobody waits for that.
update crawl set page_price = least(greatest(coalesce(page_price, 1) * %(pages)s, 1e-9), 1e9),
    source_price = least(greatest(coalesce(source_price, 1) * %(sources)s, 1e-9), 1e9)
where id = (select id from crawl where id = %(crawl)s for no key update skip locked) returning page_price, source_price;

-- name: sample_pages
-- Some pages of a crawl, by chance: how long ago each was seen, and what is known of its changes; once a minute.
-- Ids are hashes, so rows that stand side by side are as good as drawn by lot. Those of other crawls among them are left out.
select extract(epoch from %(now)s::timestamptz - coalesce(last_read, last_visit))::float8, rate_a, rate_b, source from (
    (select crawl, state, lane, last_read, last_visit, rate_a, rate_b, source from url where id >= %(first)s order by id limit %(count)s)
    union all
    (select crawl, state, lane, last_read, last_visit, rate_a, rate_b, source from url where id < %(first)s order by id limit %(count)s)) u
where crawl = %(crawl)s and state = 'waiting' and lane is not null and coalesce(last_read, last_visit) is not null limit %(count)s;

-- name: sample_hosts
-- The same for a crawl that has few of the rows: pages on some of its hosts; after sample_pages.
-- From some time on, of all between the first next visit and the last, and back from it: hosts by theirs, then pages by theirs.
with time as (
    select min(revisit) + %(part)s * (max(revisit) - min(revisit)) as start from crawl_host
    where crawl = %(crawl)s and stage = 2 and revisit is not null
), hosts as materialized (
    (select h.host from time cross join lateral (select host from crawl_host
        where crawl = %(crawl)s and stage = 2 and revisit >= time.start order by revisit limit %(hosts)s) h)
    union all
    (select h.host from time cross join lateral (select host from crawl_host
        where crawl = %(crawl)s and stage = 2 and revisit < time.start order by revisit desc limit %(hosts)s) h)
), share as (
    select ceil(%(count)s / greatest(count(*), 1)::float8)::int as pages from hosts
)
select extract(epoch from %(now)s::timestamptz - coalesce(u.last_read, u.last_visit))::float8, u.rate_a, u.rate_b, u.source
from hosts h cross join share cross join lateral (
        select min(rank) + %(part)s * (max(rank) - min(rank)) as start from url where crawl = %(crawl)s and host = h.host and lane = 2) time
    cross join lateral (
        (select * from url where crawl = %(crawl)s and host = h.host and lane = 2 and rank >= time.start order by rank, id limit share.pages)
        union all
        (select * from url where crawl = %(crawl)s and host = h.host and lane = 2 and rank < time.start order by rank desc, id desc
            limit share.pages)) u
where u.state = 'waiting' and coalesce(u.last_read, u.last_visit) is not null limit %(count)s;

-- name: put_freshness
-- Stores how fresh a crawl's copies are by estimate, in the row of this minute; once a minute.
insert into crawl_stat as s (crawl, span_s, at, freshness, age_s)
values (%(crawl)s, 60, date_trunc('minute', now()), %(freshness)s, %(age_s)s)
on conflict (crawl, span_s, at) do update set freshness = excluded.freshness, age_s = excluded.age_s;

-- name: status_freshness
-- The latest estimate of how fresh each crawl's copies are, and its revisits of a day; for scrapy status.
select c.name, f.freshness, f.age_s, coalesce(s.changed, 0), coalesce(s.unchanged, 0), coalesce(s.weight, 0), coalesce(s.weight_changed, 0)
from crawl c
    left join lateral (
        select freshness, age_s from crawl_stat f where f.crawl = c.id and f.span_s = 60 and f.freshness is not null
        order by f.at desc limit 1) f on true
    left join lateral (
        select sum(changed)::bigint as changed, sum(unchanged)::bigint as unchanged, sum(weight)::bigint as weight,
            sum(weight_changed)::bigint as weight_changed from crawl_stat s
        where s.crawl = c.id and s.at > now() - interval '1 day') s on true;

-- name: visited_pages
-- All pages of a crawl that are visited again, and when each was seen last; for scrapy demo, whose web is small.
select u.canonical, extract(epoch from coalesce(u.last_read, u.last_visit))::float8 from url u join crawl c on c.id = u.crawl and c.name = %(crawl)s
where u.state = 'waiting' and u.block_digest is not null;

-- name: explain_changes
-- What is known of the changes of a page: rate, last change, hints, noise of its host; for scrapy explain.
select u.rate_a, u.rate_b, v.change, v.at, v.new_letters, v.gone_letters, s.modified_at, s.fresh_until, s.listed_at, t.noise
from url u left join page_state s on s.url = u.id left join host_text t on t.host = u.host and t.crawl = u.crawl
    left join lateral (
        select change, at, new_letters, gone_letters from page_version v where v.url = u.id and v.change is not null
        order by v.at desc limit 1) v on true
where u.id = %(id)s and u.crawl = (select id from crawl where name = %(crawl)s);

-- name: explain_hints
-- What came of what the servers of a page's host say of changes; for scrapy explain.
select h.hint, h.changed_said, h.changed_unsaid, h.same_said, h.same_unsaid
from host_hint h join url u on u.host = h.host where u.id = %(id)s order by h.hint;

-- name: export_changes
-- Changes of pages of a crawl, page by page, some at a time; for scrapy export --what changes.
-- In the order of the primary key: an index by time would have to be written at each change.
select v.url, v.at, u.canonical, v.change, v.new_letters, v.gone_letters,
    (select max(b.at) from page_version b where b.url = v.url and b.at < v.at) as before
from page_version v join url u on u.id = v.url and u.crawl = %(crawl)s
where (v.url, v.at) > ((%(page)s)::bigint, (%(moment)s)::timestamptz) and v.at >= %(since)s
    and exists (select from page_version b where b.url = v.url and b.at < v.at)
order by v.url, v.at limit %(limit)s;
