-- name: now
select clock_timestamp();

-- name: discard
-- Plans of prepared statements are made anew at their next use.
discard plans;

-- name: crawl_open
insert into crawl (name, ordering, max_depth) values (%(name)s, %(ordering)s, %(max_depth)s)
on conflict (name) do update set name = excluded.name
returning id, ordering, max_depth;

-- name: mend_host_clocks
update host set next_allowed = null, reason = '' where next_allowed > %(latest)s;

-- name: mend_server_clocks
update server set next_allowed = case when next_allowed <= %(latest)s then next_allowed end, until = least(until, %(now)s)
where next_allowed > %(latest)s or until > %(latest)s;

-- name: crawl_change
update crawl set ordering = %(ordering)s, max_depth = %(max_depth)s where id = %(crawl)s;

-- name: crawl_totals
select pages, bytes from crawl where id = %(crawl)s;

-- name: rerank
update url set rank = case %(ordering)s when 'bfs' then depth when 'dfs' then -depth else -score end
where crawl = %(crawl)s and lane in (1, 3);

-- name: too_deep
update url set state = 'ignored', why = 'depth', lane = null, rank = null
where crawl = %(crawl)s and lane in (1, 3) and visit = 0 and state = 'new' and depth > %(max_depth)s;

-- name: deep_enough
update url set state = 'new', why = '', lane = 1,
    rank = case %(ordering)s when 'bfs' then depth when 'dfs' then -depth else -score end
where crawl = %(crawl)s and state = 'ignored' and why = 'depth' and (%(max_depth)s = 0 or depth <= %(max_depth)s);

-- name: all_hosts
select array_agg(host) from crawl_host where crawl = %(crawl)s;

-- name: host_ids
select name, id from host where name = any (%(names)s);

-- name: host_names
select name from host where id = any (%(hosts)s::int[]);

-- name: add_hosts
insert into host (name) select unnest(%(names)s::text[]) on conflict (name) do nothing returning name, id;

-- name: add_crawl_hosts
insert into crawl_host (crawl, host, name, stage)
select %(crawl)s, id, name, case when server is null then 0 when prepared then 2 else 1 end from host where id = any (%(hosts)s::int[])
on conflict do nothing;

-- name: crawled_hosts
select h.name from host h join crawl_host c on c.host = h.id and c.crawl = %(crawl)s where h.name = any (%(names)s::text[]);

-- name: domain_hosts
-- How many names below each domain this crawl knows; counting ends at the limit. '~' comes after all letters of names.
select d.domain, (select count(*) from (
    select from host h join crawl_host c on c.host = h.id and c.crawl = %(crawl)s
    where reverse(h.name) collate "C" >= reverse('.' || d.domain) and reverse(h.name) collate "C" < reverse('.' || d.domain) || '~'
    limit %(most)s) n)
from unnest(%(domains)s::text[]) d (domain);

-- name: full_hosts
select host from crawl_host where crawl = %(crawl)s and host = any (%(hosts)s::int[])
    and ((%(host_pages)s > 0 and pages >= %(host_pages)s) or (%(host_bytes)s > 0 and bytes >= %(host_bytes)s));

-- name: add_urls
insert into url (id, crawl, host, canonical, state, why, lane, rank, depth, score, parent, hops, request, first_seen)
select id, %(crawl)s, host, canonical, case when f.barred then 'forbidden' else state::url_state end,
    case when f.barred then 'forgotten' else why end, case when not f.barred then lane end, case when not f.barred then rank end,
    depth, score, parent, hops, request::json, %(now)s
from unnest(%(id)s::bigint[], %(host)s::int[], %(canonical)s::text[], %(state)s::text[], %(why)s::text[], %(lane)s::smallint[],
    %(rank)s::float8[], %(depth)s::int[], %(score)s::float8[], %(parent)s::bigint[], %(hops)s::smallint[], %(request)s::text[])
    as n (id, host, canonical, state, why, lane, rank, depth, score, parent, hops, request)
    cross join lateral (
        select (select exists (select from forgotten where barred)) and is_forgotten(n.canonical, n.host) as barred offset 0) f
order by id
on conflict (id) do nothing
returning id, host, lane;

-- name: nearer_urls
update url u set depth = n.depth, parent = n.parent, score = greatest(u.score, n.score),
    rank = case when u.lane in (1, 3) then
        case %(ordering)s when 'bfs' then n.depth when 'dfs' then -n.depth else -greatest(u.score, n.score) end else u.rank end
from unnest(%(id)s::bigint[], %(canonical)s::text[], %(depth)s::int[], %(parent)s::bigint[], %(score)s::float8[])
    as n (id, canonical, depth, parent, score)
where u.id = n.id and u.canonical = n.canonical and n.depth < u.depth
returning u.id, u.host, u.depth;

-- name: nearer_children
update url u set depth = %(depth)s + 1, parent = p.parent, score = greatest(u.score, 1::float8 / (2 + %(depth)s)),
    rank = case when u.lane in (1, 3) then
        case %(ordering)s when 'bfs' then %(depth)s + 1 when 'dfs' then -(%(depth)s + 1)
            else -greatest(u.score, 1::float8 / (2 + %(depth)s)) end
        else u.rank end
from (
    select k.id, min(l.url) as parent from page_links l cross join lateral unnest(l.known) as k (id)
    where l.url = any (%(ids)s::bigint[]) group by k.id
) p
where u.id = p.id and u.depth > %(depth)s + 1
returning u.id, u.host;

-- name: revive_urls
update url u set
    state = case when u.state in ('new', 'waiting', 'retry', 'gone') then u.state else 'new' end,
    tries = case when u.state in ('new', 'waiting', 'retry', 'gone') then u.tries else 0 end,
    why = case when u.state in ('new', 'waiting', 'retry', 'gone') then u.why else '' end,
    lane = case when n.urgent then 0 else 1 end,
    rank = case when n.urgent then 0 else case %(ordering)s when 'bfs' then u.depth when 'dfs' then -u.depth else -u.score end end
from unnest(%(id)s::bigint[], %(canonical)s::text[], %(urgent)s::bool[]) as n (id, canonical, urgent)
where u.id = n.id and u.canonical = n.canonical and (u.last_visit >= %(since)s::timestamptz) is not true
    and (u.state, u.why) is distinct from ('forbidden'::url_state, 'forgotten') and (
    (n.urgent and u.lane is distinct from 0) or u.state = 'retired'
    or (u.state = 'ignored' and u.why = 'depth' and (%(max_depth)s = 0 or u.depth <= %(max_depth)s)))
returning u.id, u.host;

-- name: revive_depths
update url u set state = 'new', why = '', lane = 1,
    rank = case %(ordering)s when 'bfs' then depth when 'dfs' then -depth else -score end
where id = any (%(ids)s::bigint[]) and state = 'ignored' and why = 'depth' and depth <= %(max_depth)s
returning id, host;

-- name: end_visits
update url u set visit = u.visit + 1, state = o.state::url_state, status = o.status, why = o.why, tries = o.tries,
    next_visit = o.next_visit, interval_s = coalesce(o.interval_s, u.interval_s), moved_to = o.moved_to, last_visit = o.at,
    changes = u.changes + o.changed::int,
    last_change = case when o.changed or (o.block_digest is not null and u.block_digest is null) then o.at else u.last_change end,
    etag = case when o.block_digest is not null then o.etag when o.status between 200 and 304 then coalesce(o.etag, u.etag)
        else u.etag end,
    modified = case when o.block_digest is not null then o.modified when o.status between 200 and 304
        then coalesce(o.modified, u.modified) else u.modified end,
    body_digest = coalesce(o.body_digest, u.body_digest), block_digest = coalesce(o.block_digest, u.block_digest),
    expires = case when o.block_digest is not null then o.expires else coalesce(o.expires, u.expires) end,
    lane = o.lane,
    rank = case when o.lane = 1 then case %(ordering)s when 'bfs' then u.depth when 'dfs' then -u.depth else -u.score end
        when o.lane is not null then extract(epoch from o.next_visit) end
from unnest(%(id)s::bigint[], %(visit)s::int[], %(server)s::int[], %(epoch)s::int[], %(state)s::text[], %(at)s::timestamptz[],
    %(status)s::smallint[], %(why)s::text[], %(next_visit)s::timestamptz[], %(tries)s::smallint[], %(interval_s)s::float8[],
    %(changed)s::bool[], %(moved_to)s::text[], %(etag)s::text[], %(modified)s::text[], %(lane)s::smallint[],
    %(body_digest)s::bytea[], %(block_digest)s::bytea[], %(expires)s::timestamptz[])
    as o (id, visit, server, epoch, state, at, status, why, next_visit, tries, interval_s, changed, moved_to, etag, modified, lane,
        body_digest, block_digest, expires)
    join server s on s.id = o.server and s.epoch = o.epoch and s.worker = %(worker)s
where u.id = o.id and u.visit = o.visit and u.crawl = %(crawl)s
returning u.id, u.host, u.last_change = u.last_visit, u.depth;

-- name: put_pages
insert into page (url, at, title, content_type, charset, language, length, noindex, noarchive, elapsed_s, warc_file, warc_offset,
    warc_length, warc_record, warc_digest, warc_at)
select * from unnest(%(url)s::bigint[], %(at)s::timestamptz[], %(title)s::text[], %(content_type)s::text[], %(charset)s::text[],
    %(language)s::text[], %(length)s::int[], %(noindex)s::bool[], %(noarchive)s::bool[], %(elapsed_s)s::real[], %(file)s::text[],
    %(start)s::bigint[], %(size)s::int[], %(record)s::uuid[], %(digest)s::text[], %(began)s::timestamptz[])
on conflict (url) do update set at = excluded.at, title = excluded.title, content_type = excluded.content_type,
    charset = excluded.charset, language = excluded.language, length = excluded.length,
    noindex = excluded.noindex, noarchive = excluded.noarchive, elapsed_s = excluded.elapsed_s,
    warc_file = excluded.warc_file, warc_offset = excluded.warc_offset, warc_length = excluded.warc_length,
    warc_record = excluded.warc_record, warc_digest = excluded.warc_digest, warc_at = excluded.warc_at;

-- name: put_places
update page p set warc_file = n.file, warc_offset = n.start, warc_length = n.size, warc_record = n.record, warc_digest = n.digest,
    warc_at = n.began
from unnest(%(url)s::bigint[], %(file)s::text[], %(start)s::bigint[], %(size)s::int[], %(record)s::uuid[], %(digest)s::text[],
    %(began)s::timestamptz[]) as n (url, file, start, size, record, digest, began)
where p.url = n.url;

-- name: put_versions
insert into page_version (url, at, status, body_digest, block_digest, length, warc_file, warc_offset, warc_length, warc_record,
    warc_digest, warc_at)
select * from unnest(%(url)s::bigint[], %(at)s::timestamptz[], %(status)s::smallint[], %(body_digest)s::bytea[],
    %(block_digest)s::bytea[], %(length)s::int[], %(file)s::text[], %(start)s::bigint[], %(size)s::int[], %(record)s::uuid[],
    %(digest)s::text[], %(began)s::timestamptz[])
on conflict do nothing;

-- name: put_links
insert into page_links (url, known, known_kinds, known_texts, other, other_kinds, other_texts)
select url, known::bigint[], known_kinds, known_texts, other, other_kinds, other_texts
from unnest(%(url)s::bigint[], %(known)s::text[], %(known_kinds)s::text[], %(known_texts)s::text[], %(other)s::text[],
    %(other_kinds)s::text[], %(other_texts)s::text[])
    as l (url, known, known_kinds, known_texts, other, other_kinds, other_texts)
on conflict (url) do update set known = excluded.known, known_kinds = excluded.known_kinds, known_texts = excluded.known_texts,
    other = excluded.other, other_kinds = excluded.other_kinds, other_texts = excluded.other_texts;

-- name: count_pages
with n as (
    select * from unnest(%(host)s::int[], %(pages)s::int[], %(bytes)s::bigint[]) as n (host, pages, bytes)
), hosts as (
    update crawl_host c set pages = c.pages + n.pages, bytes = c.bytes + n.bytes from n
    where c.crawl = %(crawl)s and c.host = n.host
)
update crawl set pages = pages + (select sum(pages) from n), bytes = bytes + (select sum(bytes) from n) where id = %(crawl)s;

-- name: ignore_over_quota
update url u set state = 'ignored', why = 'quota', lane = null, rank = null
where crawl = %(crawl)s and host = any (%(hosts)s::int[]) and lane in (1, 3) and state = 'new';

-- name: lock_hosts
select from crawl_host where crawl = %(crawl)s and host = any (%(hosts)s::int[]) order by host for no key update;

-- name: refresh_hosts
update crawl_host c set ready = q.ready, retry = q.retry, revisit = q.revisit,
    since = case when c.ready is null and q.ready is not null then extract(epoch from %(now)s::timestamptz) else c.since end
from (
    select h.host, case when urgent.rank is not null then '-Infinity' else least(new.rank, backfill.rank) end as ready,
        retry.rank as retry, revisit.rank as revisit
    from unnest(%(hosts)s::int[]) as h (host)
    left join lateral (select rank from url where crawl = %(crawl)s and host = h.host and lane = 0 order by rank, id limit 1) urgent on true
    left join lateral (select rank from url where crawl = %(crawl)s and host = h.host and lane = 1 order by rank, id limit 1) new on true
    left join lateral (select rank from url where crawl = %(crawl)s and host = h.host and lane = 3 order by rank, id limit 1) backfill on true
    left join lateral (select rank from url where crawl = %(crawl)s and host = h.host and lane = 4 order by rank, id limit 1) retry on true
    left join lateral (select rank from url where crawl = %(crawl)s and host = h.host and lane = 2 order by rank, id limit 1) revisit on true
) q
where c.crawl = %(crawl)s and c.host = q.host
    and (c.ready, c.retry, c.revisit) is distinct from (q.ready, q.retry, q.revisit);

-- name: notify_robots
select pg_notify('crawlproj_robots', o.origin)
from unnest(%(origin)s::text[], %(body)s::text[]) as n (origin, body) join origin o on o.origin = n.origin and o.body <> n.body
where length(o.origin) < 2000;

-- name: put_robots
insert into origin (origin, host, status, body, fetched, expires, failures, etag, modified)
select * from unnest(%(origin)s::text[], %(host)s::text[], %(status)s::int[], %(body)s::text[], %(fetched)s::timestamptz[],
    %(expires)s::timestamptz[], %(failures)s::int[], %(etag)s::text[], %(modified)s::text[])
on conflict (origin) do update set host = excluded.host, status = excluded.status, body = excluded.body,
    fetched = excluded.fetched, expires = excluded.expires, failures = excluded.failures, etag = excluded.etag,
    modified = excluded.modified;

-- name: get_robots
select origin, host, status, body, fetched, expires, failures, etag, modified from origin where origin = any (%(origins)s);

-- name: forbidden_urls
select u.id, u.canonical from url u
where u.host = (select id from host where name = %(host)s) and u.state = 'forbidden' and u.id >= (%(first)s)::bigint
    and u.why like 'robots%%' and starts_with(u.canonical, %(root)s)
order by u.id limit %(count)s;

-- name: allow_urls
update url u set state = 'new', why = '', tries = 0, lane = 1,
    rank = case c.ordering when 'bfs' then u.depth when 'dfs' then -u.depth else -u.score end
from crawl c
where c.id = u.crawl and u.id = any (%(ids)s::bigint[]) and u.state = 'forbidden' and u.why like 'robots%%'
    and (c.max_depth = 0 or u.depth <= c.max_depth)
returning u.crawl, u.host;

-- name: put_clocks
-- A worker whose lease has moved on can only make a rest longer.
update host h set next_allowed = n.at, reason = n.reason, asked = n.asked, failures = n.failures
from unnest(%(name)s::text[], %(at)s::timestamptz[], %(reason)s::text[], %(asked)s::int[], %(failures)s::int[])
    as n (name, at, reason, asked, failures)
where h.name = n.name and (h.next_allowed is null or n.at > h.next_allowed
    or exists (select from server s where s.id = h.server and s.worker = %(worker)s));

-- name: put_server_clocks
update server s set next_allowed = n.at, reason = n.reason
from unnest(%(id)s::int[], %(at)s::timestamptz[], %(reason)s::text[]) as n (id, at, reason)
where s.id = n.id and (s.next_allowed is null or n.at > s.next_allowed or s.worker = %(worker)s);

-- name: prepare_hosts
with prepared as (
    update host set prepared = true where name = any (%(names)s::text[]) and not prepared
)
update crawl_host c set stage = 2 from host h where h.name = any (%(names)s::text[]) and c.host = h.id and c.stage = 1;

-- name: take_unresolved
-- Hosts without a server, best first.
update host set taken_until = %(now)s::timestamptz + interval '60 seconds'
where id in (
    select id from host where taken_until <= %(now)s and id = any (array(
        select q.host from (
            (select c.place, c.host, c.name from crawl_host c join host h on h.id = c.host and h.taken_until <= %(now)s
                where c.crawl = %(crawl)s and c.stage = 0 and c.place is not null order by c.place, c.name limit %(count)s)
            union all
            (select c.place, c.host, c.name from crawl_host c join host h on h.id = c.host and h.taken_until <= %(now)s
                where c.crawl = %(crawl)s and c.stage = 0 and c.retry is not null order by c.retry, c.name limit %(count)s)
            union all
            (select c.place, c.host, c.name from crawl_host c join host h on h.id = c.host and h.taken_until <= %(now)s
                where c.crawl = %(crawl)s and c.stage = 0 and c.revisit is not null order by c.revisit, c.name limit %(count)s)
        ) q group by q.host order by min(q.place) nulls last, min(q.name) limit %(count)s))
    for update skip locked)
returning name;

-- name: take_outdated
-- Of the next hundred hosts in each queue, which will soon be asked, those looked up too long ago.
update host set taken_until = %(now)s::timestamptz + interval '60 seconds'
where id in (
    select id from host where taken_until <= %(now)s and id = any (array(
        select q.host from (
            select n.place, n.host, n.name from unnest('{1,2}'::smallint[]) as g (stage) cross join lateral (
                (select c.place, c.host, c.name, h.resolved, h.failures, h.taken_until
                    from crawl_host c join host h on h.id = c.host join server s on s.id = h.server and s.until <= %(now)s
                    where c.crawl = %(crawl)s and c.stage = g.stage and c.place is not null order by c.place, c.name limit 100)
                union all
                (select c.place, c.host, c.name, h.resolved, h.failures, h.taken_until
                    from crawl_host c join host h on h.id = c.host join server s on s.id = h.server and s.until <= %(now)s
                    where c.crawl = %(crawl)s and c.stage = g.stage and c.retry is not null order by c.retry, c.name limit 100)
                union all
                (select c.place, c.host, c.name, h.resolved, h.failures, h.taken_until
                    from crawl_host c join host h on h.id = c.host join server s on s.id = h.server and s.until <= %(now)s
                    where c.crawl = %(crawl)s and c.stage = g.stage and c.revisit is not null order by c.revisit, c.name limit 100)
            ) n
            where n.taken_until <= %(now)s and n.resolved
                < %(now)s::timestamptz - case when n.failures > 0 then interval '5 minutes' else interval '1 day' end
        ) q group by q.host order by min(q.place) nulls last, min(q.name) limit %(count)s))
    for update skip locked)
returning name;

-- name: put_addresses
with n as (
    select * from unnest(%(name)s::text[], %(address)s::text[]) as n (name, address)
), made as (
    insert into server (address) select distinct address from n on conflict (address) do nothing returning id, address
), servers as (
    select id, address from made union all select s.id, s.address from server s join (select distinct address from n) d using (address)
), found as (
    update host h set server = s.id, resolved = %(now)s from n join servers s using (address) where h.name = n.name
    returning h.id, h.prepared
)
update crawl_host c set stage = case when f.prepared then 2 else 1 end from found f where c.host = f.id and c.stage = 0;

-- name: lease_ranked
-- Free servers by their best host, one step of the index after the other: what is not looked at costs nothing.
with recursive walk (at, name, server, seen) as (
    select '-Infinity'::float8, '' collate "C", null::int, %(seen)s::int[]
    union all
    select n.place, n.name, n.server, w.seen || n.server from walk w cross join lateral (
        select c.place, c.name, h.server from crawl_host c join host h on h.id = c.host join server s on s.id = h.server
        where c.crawl = %(crawl)s and c.stage = %(stage)s and (c.place, c.name) > (w.at, w.name)
            and c.place <= case when %(spent)s then '-Infinity'::float8 else 'Infinity' end
            and (s.until <= %(now)s or (s.worker is null and s.yielded is distinct from %(crawl)s))
            and (h.next_allowed is null or h.next_allowed <= %(soon)s) and (s.next_allowed is null or s.next_allowed <= %(soon)s)
            and h.server <> all (w.seen)
        order by c.place, c.name limit 1) n
    where cardinality(w.seen) < %(count)s
)
select at, name, server from walk where server is not null;

-- name: lease_retry
with recursive walk (at, name, server, seen) as (
    select '-Infinity'::float8, '' collate "C", null::int, %(seen)s::int[]
    union all
    select n.retry, n.name, n.server, w.seen || n.server from walk w cross join lateral (
        select c.retry, c.name, h.server from crawl_host c join host h on h.id = c.host join server s on s.id = h.server
        where c.crawl = %(crawl)s and c.stage = %(stage)s and (c.retry, c.name) > (w.at, w.name)
            and c.retry <= extract(epoch from %(now)s::timestamptz)::float8
            and (s.until <= %(now)s or (s.worker is null and s.yielded is distinct from %(crawl)s))
            and (h.next_allowed is null or h.next_allowed <= %(soon)s) and (s.next_allowed is null or s.next_allowed <= %(soon)s)
            and h.server <> all (w.seen)
        order by c.retry, c.name limit 1) n
    where cardinality(w.seen) < %(count)s
)
select at, name, server from walk where server is not null;

-- name: lease_revisit
with recursive walk (at, name, server, seen) as (
    select '-Infinity'::float8, '' collate "C", null::int, %(seen)s::int[]
    union all
    select n.revisit, n.name, n.server, w.seen || n.server from walk w cross join lateral (
        select c.revisit, c.name, h.server from crawl_host c join host h on h.id = c.host join server s on s.id = h.server
        where c.crawl = %(crawl)s and c.stage = %(stage)s and (c.revisit, c.name) > (w.at, w.name)
            and c.revisit <= extract(epoch from %(now)s::timestamptz)::float8
            and (s.until <= %(now)s or (s.worker is null and s.yielded is distinct from %(crawl)s))
            and (h.next_allowed is null or h.next_allowed <= %(soon)s) and (s.next_allowed is null or s.next_allowed <= %(soon)s)
            and h.server <> all (w.seen)
        order by c.revisit, c.name limit 1) n
    where cardinality(w.seen) < %(count)s
)
select at, name, server from walk where server is not null;

-- name: lease_take
update server s set worker = %(worker)s, epoch = s.epoch + 1, until = %(until)s, yielded = null
from (
    select id, worker is not null as dead from server s where id = any (%(servers)s::int[]) and (s.until <= %(now)s or (s.worker is null and s.yielded is distinct from %(crawl)s))
    order by id for update skip locked) d
where s.id = d.id
returning s.id, s.address, s.epoch, s.until, s.next_allowed, s.reason, d.dead;

-- name: count_unseen
update host set asked = asked + %(unseen)s where server = any (%(servers)s::int[]);

-- name: lease_hosts
select h.server, h.name, h.next_allowed, h.reason, h.asked, h.failures, h.prepared, c.pages
from host h join crawl_host c on c.host = h.id and c.crawl = %(crawl)s
where h.server = any (%(servers)s::int[]) and ((c.ready is not null and (c.ready = '-Infinity' or not %(spent)s))
    or least(c.retry, c.revisit) <= extract(epoch from %(now)s::timestamptz))
order by c.ready nulls last, h.id;

-- name: arrivals
select s.id, s.address, s.epoch, s.until, s.next_allowed, s.reason,
    h.name, h.next_allowed, h.reason, h.asked, h.failures, h.prepared, c.pages
from server s join host h on h.server = s.id join crawl_host c on c.host = h.id and c.crawl = %(crawl)s
where s.id = any (%(servers)s::int[]) and s.worker = %(worker)s and h.name <> all (%(known)s::text[])
    and (h.next_allowed is null or h.next_allowed <= %(soon)s)
    and ((c.ready is not null and (c.ready = '-Infinity' or not %(spent)s))
        or least(c.retry, c.revisit) <= extract(epoch from %(now)s::timestamptz))
order by c.ready nulls last, h.id limit 1000;

-- name: named_hosts
select h.server, h.name, h.next_allowed, h.reason, h.asked, h.failures, h.prepared, coalesce(c.pages, 0)
from host h left join server s on s.id = h.server left join crawl_host c on c.host = h.id and c.crawl = %(crawl)s
where h.name = any (%(names)s::text[]) and (h.next_allowed is null or h.next_allowed <= %(soon)s)
    and (s.next_allowed is null or s.next_allowed <= %(soon)s)
order by h.id;

-- name: held_servers
select id, address, epoch, until, next_allowed, reason, false from server where id = any (%(servers)s::int[]) and worker = %(worker)s;

-- name: renew
update server set until = %(until)s where id = any (%(servers)s::int[]) and worker = %(worker)s returning id, until;

-- name: contested
select id from unnest(%(servers)s::int[]) as s (id)
where exists (
    select from host h join crawl_host c on c.host = h.id and c.crawl <> %(crawl)s
    where h.server = s.id and (c.ready is not null or least(c.retry, c.revisit) <= extract(epoch from %(now)s::timestamptz)));

-- name: release
update server set worker = null, until = %(until)s, yielded = %(yielded)s where id = any (%(servers)s::int[]) and worker = %(worker)s;

-- name: end_turns
-- Whose turn is over waits for the next one from now, slow and failing hosts up to an hour longer.
update crawl_host c set since = extract(epoch from %(now)s::timestamptz)
    + least(3600, 60 * greatest(0, coalesce(extract(epoch from h.next_allowed - %(now)s::timestamptz), 0)))
from host h where h.server = any (%(servers)s::int[]) and c.host = h.id and c.crawl = %(crawl)s and c.ready is not null
    and exists (select from server s where s.id = h.server and s.worker = %(worker)s);

-- name: attend
insert into worker (name, crawl, wanting, until) values (%(worker)s, %(crawl)s, %(wanting)s, %(until)s)
on conflict (name) do update set wanting = excluded.wanting, until = excluded.until;

-- name: peers
select w.name, w.crawl = %(crawl)s, w.wanting, (select count(*) from server s where s.worker = w.name and s.until > %(now)s)
from worker w where w.name <> %(worker)s and w.until > %(now)s order by w.name;

-- name: leave
delete from worker where name = %(worker)s or until < %(now)s::timestamptz - interval '1 day';

-- name: forget_workers
delete from worker where name = any (%(workers)s::text[]);

-- name: bury
update server set until = %(now)s, reason = 'taken over', next_allowed = greatest(next_allowed, least(until, %(rested)s))
where worker = any (%(workers)s::text[]) and until > %(now)s;

-- name: refill
-- Looked up one by one (limit 1): joined, a big table would be read as a whole as soon as many hosts are asked for.
select u.id, u.canonical, w.name, w.server, w.epoch, u.visit, u.lane, u.state, u.depth, u.tries, u.hops, u.changes, u.interval_s,
    u.last_visit, u.last_change, u.etag, u.modified, u.body_digest, u.block_digest, u.request, u.expires,
    p.warc_digest, p.warc_at, p.warc_record, p.noarchive, c.pages
from unnest(%(name)s::text[], %(server)s::int[], %(epoch)s::int[], %(count)s::int[], %(urgent)s::bool[]) as w (name, server, epoch, count, urgent)
    cross join lateral (select from server s where s.id = w.server and s.epoch = w.epoch limit 1) s
    cross join lateral (select h.id from host h where h.name = w.name and h.server = w.server limit 1) h
    cross join lateral (select c.pages from crawl_host c where c.host = h.id and c.crawl = %(crawl)s limit 1) c
    join (values (0, 'Infinity'), (1, 'Infinity'), (2, extract(epoch from coalesce(%(now)s, statement_timestamp()))::float8), (3, 'Infinity'),
        (4, extract(epoch from coalesce(%(now)s, statement_timestamp()))::float8)) as l (lane, latest) on l.lane = 0 or not w.urgent
    cross join lateral (
        select * from url where crawl = %(crawl)s and host = h.id and lane = l.lane and rank <= l.latest
            and id <> all (%(holding)s::bigint[])
        order by rank, id limit w.count) u
    left join lateral (
        select warc_digest, warc_at, warc_record, noarchive from page where url = u.id and u.block_digest is not null limit 1) p on true
order by h.id, u.lane, u.rank, u.id;

-- name: outlook_ready
-- Hosts that have a URL now and that no one else holds, a hundred at most of each queue, and when they may be asked.
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
-- Is there a host that may be asked at once?
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
-- The first retry whose host does not rest then.
select min(n.retry) from unnest('{0,1,2}'::smallint[]) as g (stage) cross join lateral (
    select c.retry from crawl_host c join host h on h.id = c.host left join server s on s.id = h.server
    where c.crawl = %(crawl)s and c.stage = g.stage and c.retry is not null
        and (s.until is null or s.until <= %(now)s or s.worker = %(worker)s)
        and greatest(h.next_allowed, s.next_allowed, %(now)s::timestamptz) <= greatest(to_timestamp(c.retry), %(now)s::timestamptz)
    order by c.retry, c.name limit 1) n;

-- name: outlook_later
-- When may the first host be asked, if there is none now? Looks at all that have a URL but rest, and at retries up to `latest`.
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
select to_timestamp(min(n.revisit)) from unnest('{0,1,2}'::smallint[]) as g (stage) cross join lateral (
    select c.revisit from crawl_host c where c.crawl = %(crawl)s and c.stage = g.stage and c.revisit is not null
    order by c.revisit, c.name limit 1) n;

-- name: outlook_elsewhere
select count(*) from server s
where (s.worker is not null or s.yielded is not null) and s.until > %(now)s and s.worker is distinct from %(worker)s and exists (
    select from host h join crawl_host c on c.host = h.id and c.crawl = %(crawl)s
    where h.server = s.id and ((c.ready is not null and (c.ready = '-Infinity' or not %(spent)s)) or c.retry is not null
        or c.revisit <= extract(epoch from %(now)s::timestamptz)));

-- name: look
select u.id, u.canonical, h.name, u.state, u.lane, u.rank, u.depth, u.score, u.parent, u.visit, u.tries, u.changes, u.status, u.why,
    u.first_seen, u.last_visit, u.last_change, u.next_visit, u.interval_s, u.moved_to
from url u join host h on h.id = u.host where u.id = any (%(ids)s::bigint[]) and u.crawl = %(crawl)s;

-- name: seeds
select canonical from url where crawl = %(crawl)s and depth = 0 order by first_seen, id limit 10000;

-- name: counts
select state, sum(number)::bigint from url_count where crawl = %(crawl)s group by state;

-- name: sum_counts
-- Those that another worker sums up at the same time are left to it.
with gone as (
    delete from url_count where ctid = any (array(select ctid from url_count where crawl = %(crawl)s for update skip locked))
    returning state, number
)
insert into url_count select %(crawl)s, state, sum(number) from gone group by state having sum(number) <> 0;

-- name: migration_lock
-- Two workers that start at once: one migrates, the other waits and finds nothing to do. The number is ours alone.
select pg_advisory_xact_lock(7240515);

-- name: migration_table
select to_regclass('crawlproj.migration') is not null;

-- name: migration_applied
select number from crawlproj.migration order by number;

-- name: migration_mark
insert into crawlproj.migration (number, name, applied) values (%(number)s, %(name)s, now());

-- What people ask: scrapy status, explain, plan. None of them locks or writes anything.

-- name: crawl_names
select name from crawl order by name;

-- name: crawl_named
select id, ordering, max_depth from crawl where name = %(name)s;

-- name: status_urls
-- `fetched`: the last visit got an answer; `documents`: there is a reading of it.
select c.name, u.state, count(*), count(*) filter (where u.status > 0), count(*) filter (where u.block_digest is not null),
    count(*) filter (where u.lane in (0, 1, 3) or u.rank <= extract(epoch from %(now)s::timestamptz)),
    to_timestamp(min(u.rank) filter (where u.lane in (2, 4) and u.rank > extract(epoch from %(now)s::timestamptz)))
from crawl c join url u on u.crawl = c.id group by c.name, u.state;

-- name: status_hosts
select c.name, count(ch.host), count(distinct s.id) filter (where s.until > %(now)s)
from crawl c left join crawl_host ch on ch.crawl = c.id left join host h on h.id = ch.host left join server s on s.id = h.server
group by c.name;

-- name: status_versions
select c.name, count(*) from page_version v join url u on u.id = v.url join crawl c on c.id = u.crawl group by c.name;

-- name: crawls_with_host
select c.name from crawl c join crawl_host ch on ch.crawl = c.id join host h on h.id = ch.host where h.name = %(host)s order by c.name;

-- name: crawls_with_url
select c.name from crawl c join url u on u.crawl = c.id where u.id = any (%(ids)s::bigint[]) order by c.name;

-- name: explain_host
select h.next_allowed, h.reason, h.failures, s.next_allowed, s.reason, s.address, case when s.until > %(now)s then s.worker end, case when s.until > %(now)s then s.until end
from host h left join server s on s.id = h.server where h.name = %(host)s;

-- name: explain_host_urls
select u.state, count(*), count(*) filter (where u.lane in (0, 1, 3) or u.rank <= extract(epoch from %(now)s::timestamptz)),
    to_timestamp(min(u.rank) filter (where u.lane in (2, 4) and u.rank > extract(epoch from %(now)s::timestamptz)))
from url u join host h on h.id = u.host join crawl c on c.id = u.crawl
where h.name = %(host)s and c.name = %(crawl)s group by u.state;

-- name: explain_host_robots
select origin from origin where host = %(host)s order by origin;

-- name: plan_hosts
select h.id, h.name, greatest(%(now)s::timestamptz, h.next_allowed) as allowed
from crawl_host c join host h on h.id = c.host
where c.crawl = %(crawl)s and (c.ready is not null or c.retry is not null or c.revisit is not null)
order by greatest(h.next_allowed, %(now)s::timestamptz, case when c.ready is null then to_timestamp(least(c.retry, c.revisit)) end),
    c.ready nulls last, h.name
limit %(count)s;

-- name: plan_urls
select u.id, u.canonical, w.name, u.visit, u.lane, u.state, u.depth, u.score, u.block_digest is not null,
    case when u.lane in (2, 4) then to_timestamp(u.rank) end
from unnest(%(host)s::int[], %(name)s::text[]) as w (host, name)
    cross join unnest(array[0, 1, 2, 3, 4]) as l (lane)
    cross join lateral (
        select * from url where crawl = %(crawl)s and host = w.host and lane = l.lane order by rank, id limit %(count)s) u
order by w.host, u.lane, u.rank, u.id;

-- name: archived_places
select warc_file, warc_offset, warc_length from page where url = any (%(ids)s::bigint[]) and warc_file is not null
union select warc_file, warc_offset, warc_length from page_version where url = any (%(ids)s::bigint[]) and warc_file is not null;

-- Taking down: scrapy forget, and how workers hear of it.

-- name: takedown_fence
-- Whoever adds URLs is waited for; who comes after this transaction sees what it wrote.
lock table url in share row exclusive mode;

-- name: takedown_ask
insert into forgotten (what, reason, barred, asked) select w, %(reason)s, %(barred)s, clock_timestamp() from unnest(%(what)s::text[]) w
on conflict (what) where barred do update set ended = null,
    reason = case when excluded.reason = '' then forgotten.reason else excluded.reason end
returning id;

-- name: takedown_rules
select id, what, reason, barred, asked, ended, undone, urls, versions, records, cardinality(files) from forgotten order by id;

-- name: takedown_in_force
-- What is barred, and of what only the past was removed in the last days: a request that was on its way may still speak of it.
select id, what, reason, barred, asked from forgotten where barred or asked > clock_timestamp() - interval '3 days' order by id;

-- name: takedown_call
select nextval('crawlproj.worker_call');

-- name: takedown_last_call
select case when is_called then last_value else 0 end from worker_call;

-- name: takedown_heard
update worker set heard = %(call)s where name = %(worker)s;

-- name: takedown_deaf
select name from worker where until > clock_timestamp() and heard < %(call)s order by name;

-- name: takedown_hosts
select id, name from host where name = any (%(names)s::text[])
union select h.id, h.name from unnest(%(domains)s::text[]) d (domain) join host h
    on reverse(h.name) collate "C" >= reverse('.' || d.domain) and reverse(h.name) collate "C" < reverse('.' || d.domain) || '~'
order by name;

-- name: takedown_urls
select id from url where host = any (%(hosts)s::int[])
    or (host = any (%(some)s::int[]) and canonical = any (%(urls)s::text[])) order by id;

-- name: takedown_bar
-- The end of a visit that is under way comes too late.
update url set visit = visit + 1, state = 'forbidden', why = 'forgotten', lane = null, rank = null, tries = 0, status = 0, changes = 0,
    last_change = null, next_visit = null, interval_s = null, etag = null, modified = null, body_digest = null, block_digest = null,
    moved_to = null, expires = null
where id = any (%(ids)s::bigint[]) and request is null and (why <> 'forgotten' or state <> 'forbidden')
returning crawl, host;

-- name: takedown_requests
delete from url where id = any (%(ids)s::bigint[]) and request is not null returning crawl, host;

-- name: takedown_blank
-- It is still visited; what was read until then is gone.
update url set visit = visit + 1, changes = 0, last_change = null, etag = null, modified = null, body_digest = null,
    block_digest = null, moved_to = null, expires = null
where id = any (%(ids)s::bigint[]) and (last_visit is null or last_visit <= %(until)s)
returning crawl, host;

-- name: takedown_versions
delete from page_version where url = any (%(ids)s::bigint[]) and at <= %(until)s;

-- name: takedown_pages
with gone as (
    delete from page where url = any (%(ids)s::bigint[]) and at <= %(until)s returning url
)
delete from page_links where url in (select url from gone);

-- name: takedown_origins
delete from origin where host = any (%(names)s::text[]) and fetched <= %(until)s;

-- name: takedown_counted
update forgotten set urls = urls + %(urls)s, versions = versions + %(versions)s where id = %(id)s;

-- name: takedown_places
-- Bodies in these files, by page and by version.
select 'page', url, warc_file, warc_offset from page where warc_file = any (%(files)s::text[])
union all select 'version', url, warc_file, warc_offset from page_version where warc_file = any (%(files)s::text[]);

-- name: takedown_move_pages
update page p set warc_file = n.file, warc_offset = n.start, warc_length = n.size,
    warc_record = case when n.file is not null then warc_record end, warc_digest = case when n.file is not null then warc_digest end,
    warc_at = case when n.file is not null then warc_at end
from unnest(%(url)s::bigint[], %(old)s::bigint[], %(file)s::text[], %(start)s::bigint[], %(size)s::int[]) as n (url, old, file, start, size)
where p.url = n.url and p.warc_file = %(from)s and p.warc_offset = n.old;

-- name: takedown_read_anew
-- Pages whose last body is not kept any more: the next visit is a full one, and one that is under way comes too late. What their
-- text is compared with stays, and so does their pace.
update url set visit = visit + 1, etag = null, modified = null, body_digest = null where id = any (%(ids)s::bigint[]);

-- name: takedown_move_versions
update page_version p set warc_file = n.file, warc_offset = n.start, warc_length = n.size
from unnest(%(url)s::bigint[], %(old)s::bigint[], %(file)s::text[], %(start)s::bigint[], %(size)s::int[]) as n (url, old, file, start, size)
where p.url = n.url and p.warc_file = %(from)s and p.warc_offset = n.old;

-- name: takedown_drop_versions
delete from page_version p using unnest(%(url)s::bigint[], %(old)s::bigint[]) as n (url, old)
where p.url = n.url and p.warc_file = %(from)s and p.warc_offset = n.old;

-- name: takedown_rewrote
-- Once for each file, however often it is done.
update forgotten f set records = f.records + n.records, files = f.files || %(file)s::text
from unnest(%(what)s::text[], %(records)s::bigint[]) as n (what, records)
where f.what = n.what and f.ended is null and not %(file)s = any (f.files);

-- name: takedown_ended
update forgotten set ended = clock_timestamp() where id = any (%(ids)s::int[]);

-- name: takedown_undo
update forgotten set barred = false, undone = clock_timestamp() where barred and what = any (%(what)s::text[]) returning what;

-- name: takedown_allow
-- Unless another rule bars it, or it is too deep.
update url u set state = case when c.max_depth = 0 or u.depth <= c.max_depth then 'new' else 'ignored' end::url_state,
    why = case when c.max_depth = 0 or u.depth <= c.max_depth then '' else 'depth' end,
    lane = case when c.max_depth = 0 or u.depth <= c.max_depth then 1 end,
    rank = case when c.max_depth = 0 or u.depth <= c.max_depth
        then case c.ordering when 'bfs' then u.depth when 'dfs' then -u.depth else -u.score end end
from crawl c
where c.id = u.crawl and u.id = any (%(ids)s::bigint[]) and u.state = 'forbidden' and u.why = 'forgotten'
    and not is_forgotten(u.canonical, u.host)
returning u.crawl, u.host;

-- name: takedown_why
-- The rule in force for a URL or a host (then `url` is empty), whether the crawl knows it or not.
select what, reason, asked, ended from forgotten where barred and what = any (%(names)s::text[]) order by id limit 1;

-- name: takedown_preview
select (select count(*) from url where id = any (%(ids)s::bigint[])), (select count(*) from page where url = any (%(ids)s::bigint[])),
    (select count(*) from page_version where url = any (%(ids)s::bigint[]));

-- name: takedown_neighbours
select name from unnest(%(domains)s::text[]) d (domain) join host h
    on reverse(h.name) collate "C" >= reverse('.' || d.domain) and reverse(h.name) collate "C" < reverse('.' || d.domain) || '~'
order by name limit 4;

-- Cleaning: scrapy db clean.

-- name: retention_current
-- What the next visit compares with, and the last version.
select url, warc_at from page where url = any (%(ids)s::bigint[]) and warc_at is not null
union select v.url, v.warc_at from (
    select distinct on (url) url, warc_at from page_version where url = any (%(ids)s::bigint[]) order by url, at desc) v
where v.warc_at is not null;

-- name: retention_versions
-- Versions that are not in the archive; the last one of a page stays, unless none is to, and the first or last of each period if
-- asked for.
select url, at from (
    select url, at, warc_file, row_number() over (partition by url order by at desc) as back,
        row_number() over (partition by url, date_trunc(%(per)s, at) order by at) as first,
        row_number() over (partition by url, date_trunc(%(per)s, at) order by at desc) as last
    from page_version) v
where warc_file is null and at < %(cutoff)s and (back > 1 or %(strict)s) and not (%(first)s and first = 1) and not (%(last)s and last = 1)
order by url, at;

-- name: retention_drop_versions
delete from page_version v using unnest(%(url)s::bigint[], %(at)s::timestamptz[]) as n (url, at)
where v.url = n.url and v.at = n.at and v.warc_file is null;

-- name: retention_dead
-- Given up, and never read; seeds stay.
select u.id from url u
where u.state in ('dead', 'retired') and u.lane is null and u.depth > 0 and u.last_visit < %(cutoff)s
    and not exists (select from page p where p.url = u.id) and not exists (select from page_version v where v.url = u.id)
order by u.id;

-- name: retention_drop_urls
delete from url u where u.id = any (%(ids)s::bigint[]) and u.state in ('dead', 'retired') and u.lane is null
    and not exists (select from page p where p.url = u.id);

-- Pages from elsewhere: scrapy warc import.

-- name: import_known
select url, at, warc_at, body_digest, block_digest from page_version where url = any (%(ids)s::bigint[]);

-- name: import_urls
-- A later visit of our own counts more. The end of a visit that is under way comes too late.
insert into url as u (id, crawl, host, canonical, state, why, lane, rank, depth, score, visit, tries, changes, status, first_seen,
    last_visit, last_change, next_visit, interval_s, block_digest, moved_to, expires)
select id, %(crawl)s, host, canonical, state::url_state, why, lane, case when lane is not null then extract(epoch from next_visit) end,
    depth, score, visit, tries, changes, status, first_seen, last_visit, last_change, next_visit, interval_s, block_digest, moved_to,
    expires
from unnest(%(id)s::bigint[], %(host)s::int[], %(canonical)s::text[], %(state)s::text[], %(why)s::text[], %(lane)s::smallint[],
    %(depth)s::int[], %(score)s::float8[], %(visit)s::int[], %(tries)s::smallint[], %(changes)s::int[], %(status)s::smallint[],
    %(first_seen)s::timestamptz[], %(last_visit)s::timestamptz[], %(last_change)s::timestamptz[], %(next_visit)s::timestamptz[],
    %(interval_s)s::float8[], %(block_digest)s::bytea[], %(moved_to)s::text[], %(expires)s::timestamptz[])
    as n (id, host, canonical, state, why, lane, depth, score, visit, tries, changes, status, first_seen, last_visit, last_change,
        next_visit, interval_s, block_digest, moved_to, expires)
where not is_forgotten(canonical, host)
order by id
on conflict (id) do update set visit = u.visit + 1, state = excluded.state, why = excluded.why, tries = excluded.tries,
    lane = case when u.lane = 0 then u.lane else excluded.lane end, rank = case when u.lane = 0 then u.rank else excluded.rank end,
    changes = greatest(u.changes, excluded.changes), status = excluded.status, first_seen = least(u.first_seen, excluded.first_seen),
    last_visit = excluded.last_visit, last_change = excluded.last_change, next_visit = excluded.next_visit,
    interval_s = excluded.interval_s, block_digest = coalesce(excluded.block_digest, u.block_digest), body_digest = null, etag = null,
    modified = null, moved_to = excluded.moved_to, expires = excluded.expires
where u.canonical = excluded.canonical and u.request is null and (u.last_visit is null or u.last_visit < excluded.last_visit)
returning u.id, u.host, u.xmax = 0;

-- name: import_pages
insert into page as p (url, at, title, content_type, charset, language, length, noindex, noarchive, elapsed_s, warc_file, warc_offset,
    warc_length, warc_record, warc_digest, warc_at)
select n.url, n.at, title, content_type, charset, language, length, noindex, noarchive, 0, file, start, size, record, digest, began
from unnest(%(url)s::bigint[], %(at)s::timestamptz[], %(title)s::text[], %(content_type)s::text[], %(charset)s::text[],
    %(language)s::text[], %(length)s::int[], %(noindex)s::bool[], %(noarchive)s::bool[], %(file)s::text[], %(start)s::bigint[],
    %(size)s::int[], %(record)s::uuid[], %(digest)s::text[], %(began)s::timestamptz[])
    as n (url, at, title, content_type, charset, language, length, noindex, noarchive, file, start, size, record, digest, began)
where exists (select from url u where u.id = n.url and u.why <> 'forgotten')
on conflict (url) do update set at = excluded.at, title = excluded.title, content_type = excluded.content_type,
    charset = excluded.charset, language = excluded.language, length = excluded.length, noindex = excluded.noindex,
    noarchive = excluded.noarchive, warc_file = excluded.warc_file, warc_offset = excluded.warc_offset,
    warc_length = excluded.warc_length, warc_record = excluded.warc_record, warc_digest = excluded.warc_digest, warc_at = excluded.warc_at
where p.at < excluded.at and p.warc_at is distinct from excluded.warc_at;

-- name: import_versions
insert into page_version (url, at, status, body_digest, block_digest, length, warc_file, warc_offset, warc_length, warc_record,
    warc_digest, warc_at)
select n.* from unnest(%(url)s::bigint[], %(at)s::timestamptz[], %(status)s::smallint[], %(body_digest)s::bytea[],
    %(block_digest)s::bytea[], %(length)s::int[], %(file)s::text[], %(start)s::bigint[], %(size)s::int[], %(record)s::uuid[],
    %(digest)s::text[], %(began)s::timestamptz[])
    as n (url, at, status, body_digest, block_digest, length, file, start, size, record, digest, began)
where exists (select from url u where u.id = n.url and u.why <> 'forgotten')
on conflict do nothing;

-- name: known_depths
select id, depth from url where id = any (%(ids)s::bigint[]) and request is null;

-- name: made_requests
select id, request, depth from url
where id > %(after)s and crawl = %(crawl)s and request is not null and visit > 0 order by id limit %(count)s;
