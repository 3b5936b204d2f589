-- The outlook: what is left to do in a crawl, and when.
-- Asked by crawlproj/frontier/outlook.py when a worker has nothing to send, and once when it ends.

-- name: outlook_ready
-- Hosts that have a URL now and that nobody else holds, up to 100 of each queue, and when they may be asked.
select n.host, n.allowed from unnest('{0,1,2}'::smallint[]) as g (stage) cross join lateral (
    (select c.host, greatest(h.next_allowed, s.next_allowed, %(now)s::timestamptz) as allowed from crawl_host c join host h on h.id = c.host left join server s on s.id = h.server
        where c.crawl = %(crawl)s and c.stage = g.stage and c.place <= case when %(spent)s then '-Infinity'::float8 else 'Infinity' end
            and (s.until is null or s.until <= %(now)s or s.worker = %(worker)s) order by c.place, c.name limit 100)
    union all
    (select c.host, greatest(h.next_allowed, s.next_allowed, %(now)s::timestamptz) as allowed from crawl_host c join host h on h.id = c.host left join server s on s.id = h.server
        where c.crawl = %(crawl)s and c.stage = g.stage and c.retry <= extract(epoch from %(now)s::timestamptz)::float8
            and (s.until is null or s.until <= %(now)s or s.worker = %(worker)s) order by c.retry, c.name limit 100)
    union all
    (select c.host, greatest(h.next_allowed, s.next_allowed, %(now)s::timestamptz) as allowed from crawl_host c join host h on h.id = c.host left join server s on s.id = h.server
        where c.crawl = %(crawl)s and c.stage = g.stage and c.revisit <= extract(epoch from %(now)s::timestamptz)::float8
            and (s.until is null or s.until <= %(now)s or s.worker = %(worker)s) order by c.revisit, c.name limit 100)
) n;

-- name: outlook_able
-- Is there a host that may be asked at once? Only asked if outlook_ready found no such one in its hundreds.
select exists (
    select from unnest('{0,1,2}'::smallint[]) as g (stage) cross join lateral (
        (select c.host from crawl_host c join host h on h.id = c.host left join server s on s.id = h.server
            where c.crawl = %(crawl)s and c.stage = g.stage and c.place <= case when %(spent)s then '-Infinity'::float8 else 'Infinity' end
                and (s.until is null or s.until <= %(now)s or s.worker = %(worker)s) and greatest(h.next_allowed, s.next_allowed, %(now)s::timestamptz) <= %(now)s order by c.place, c.name limit 1)
        union all
        (select c.host from crawl_host c join host h on h.id = c.host left join server s on s.id = h.server
            where c.crawl = %(crawl)s and c.stage = g.stage and c.retry <= extract(epoch from %(now)s::timestamptz)::float8
                and (s.until is null or s.until <= %(now)s or s.worker = %(worker)s) and greatest(h.next_allowed, s.next_allowed, %(now)s::timestamptz) <= %(now)s order by c.retry, c.name limit 1)
        union all
        (select c.host from crawl_host c join host h on h.id = c.host left join server s on s.id = h.server
            where c.crawl = %(crawl)s and c.stage = g.stage and c.revisit <= extract(epoch from %(now)s::timestamptz)::float8
                and (s.until is null or s.until <= %(now)s or s.worker = %(worker)s) and greatest(h.next_allowed, s.next_allowed, %(now)s::timestamptz) <= %(now)s order by c.revisit, c.name limit 1)
    ) n);

-- name: outlook_retry
-- The time of the first retry whose host does not rest then; the limit for outlook_later.
select min(n.retry) from unnest('{0,1,2}'::smallint[]) as g (stage) cross join lateral (
    select c.retry from crawl_host c join host h on h.id = c.host left join server s on s.id = h.server
    where c.crawl = %(crawl)s and c.stage = g.stage and c.retry is not null
        and (s.until is null or s.until <= %(now)s or s.worker = %(worker)s)
        and greatest(h.next_allowed, s.next_allowed, %(now)s::timestamptz) <= greatest(to_timestamp(c.retry), %(now)s::timestamptz)
    order by c.retry, c.name limit 1) n;

-- name: outlook_later
-- When the first host may be asked; only asked if there is none now.
-- Looks at all that have a URL but rest, and at retries up to `latest`.
-- Planned each time: with few of them, each is looked up; with all of them, that would take longer than reading the tables.
select least(
    (select min(n.allowed) from unnest('{0,1,2}'::smallint[]) as g (stage) cross join lateral (
        (select greatest(h.next_allowed, s.next_allowed, %(now)s::timestamptz) as allowed from crawl_host c join host h on h.id = c.host left join server s on s.id = h.server
            where c.crawl = %(crawl)s and c.stage = g.stage and c.place <= case when %(spent)s then '-Infinity'::float8 else 'Infinity' end
                and (s.until is null or s.until <= %(now)s or s.worker = %(worker)s))
        union all
        (select greatest(h.next_allowed, s.next_allowed, %(now)s::timestamptz) as allowed from crawl_host c join host h on h.id = c.host left join server s on s.id = h.server
            where c.crawl = %(crawl)s and c.stage = g.stage and c.retry <= extract(epoch from %(now)s::timestamptz)::float8
                and (s.until is null or s.until <= %(now)s or s.worker = %(worker)s))
        union all
        (select greatest(h.next_allowed, s.next_allowed, %(now)s::timestamptz) as allowed from crawl_host c join host h on h.id = c.host left join server s on s.id = h.server
            where c.crawl = %(crawl)s and c.stage = g.stage and c.revisit <= extract(epoch from %(now)s::timestamptz)::float8
                and (s.until is null or s.until <= %(now)s or s.worker = %(worker)s))
    ) n),
    (select min(greatest(to_timestamp(c.retry), greatest(h.next_allowed, s.next_allowed, %(now)s::timestamptz)))
        from crawl_host c join host h on h.id = c.host left join server s on s.id = h.server
        where c.crawl = %(crawl)s and c.stage in (0, 1, 2) and c.retry <= %(latest)s
            and (s.until is null or s.until <= %(now)s or s.worker = %(worker)s)));

-- name: outlook_visit
-- When the first revisit of the crawl is due; part of each outlook.
select to_timestamp(min(n.revisit)) from unnest('{0,1,2}'::smallint[]) as g (stage) cross join lateral (
    select c.revisit from crawl_host c where c.crawl = %(crawl)s and c.stage = g.stage and c.revisit is not null
    order by c.revisit, c.name limit 1) n;

-- name: outlook_unresolved
-- Hosts that have work now or a retry until then, and when their names were looked up; the first to be asked.
-- Asked at most once a second, and only by a worker that has fetched nothing yet and has nothing to send.
select h.name, h.resolved, coalesce(s.address like '?%%', false) as unresolved
from crawl_host c join host h on h.id = c.host left join server s on s.id = h.server
where c.crawl = %(crawl)s and c.stage in (0, 1, 2) and (c.ready is not null or c.retry <= extract(epoch from %(until)s::timestamptz)
    or c.revisit <= extract(epoch from %(now)s::timestamptz))
order by unresolved, h.name limit 1000;

-- name: outlook_elsewhere
-- How many servers with work for this crawl are held by others or kept for them; part of each outlook.
select count(*) from server s
where (s.worker is not null or s.yielded is not null) and s.until > %(now)s and s.worker is distinct from %(worker)s and exists (
    select from host h join crawl_host c on c.host = h.id and c.crawl = %(crawl)s
    where h.server = s.id and ((c.ready is not null and (c.ready = '-Infinity' or not %(spent)s)) or c.retry is not null
        or c.revisit <= extract(epoch from %(now)s::timestamptz)));
