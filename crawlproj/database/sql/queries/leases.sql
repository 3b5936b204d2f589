-- Leases: which worker may ask which server, until when.
-- Asked by crawlproj/frontier/leases.py in the database thread of a worker.

-- name: lease_ranked
-- Free servers by the best rank of their hosts; asked when a worker wants more servers.
-- One step of the index after the other: what is not looked at costs nothing.
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
-- Free servers by their earliest due retry; asked with lease_ranked, which says how.
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
-- Free servers by their earliest due revisit; asked with lease_ranked, which says how.
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
-- Leases those of the servers that are still free, and gives them; after they were chosen.
update server s set worker = %(worker)s, epoch = s.epoch + 1, until = %(until)s, yielded = null
from (
    select id, worker is not null as dead from server s where id = any (%(servers)s::int[]) and (s.until <= %(now)s or (s.worker is null and s.yielded is distinct from %(crawl)s))
    order by id for update skip locked) d
where s.id = d.id
returning s.id, s.address, s.epoch, s.until, s.next_allowed, s.reason, s.asked, s.busy_at, d.dead;

-- name: count_unseen
-- Counts requests that a dead worker may have made: to any host of its servers, up to now; after lease_take.
update server s set busy_at = %(now)s, next_allowed = coalesce(s.next_allowed, %(now)s), asked = s.asked || coalesce((
    select jsonb_object_agg(h.name, coalesce((s.asked ->> h.name)::int, 0) + %(unseen)s)
    from (select name from host where server = s.id limit 10000) h), '{}')
where s.id = any (%(servers)s::int[])
returning s.id, s.next_allowed, s.asked, s.busy_at;

-- name: lease_hosts
-- The hosts of leased servers that have a URL now; asked right after lease_take.
select h.server, h.name, h.next_allowed, h.reason, h.failures, h.prepared, c.pages
from host h join crawl_host c on c.host = h.id and c.crawl = %(crawl)s
where h.server = any (%(servers)s::int[]) and ((c.ready is not null and (c.ready = '-Infinity' or not %(spent)s))
    or least(c.retry, c.revisit) <= extract(epoch from %(now)s::timestamptz))
order by c.ready nulls last, h.id;

-- name: arrivals
-- Hosts with a URL on held servers that their worker does not know yet; asked before each lease_ranked.
select s.id, s.address, s.epoch, s.until, s.next_allowed, s.reason, s.asked, s.busy_at,
    h.name, h.next_allowed, h.reason, h.failures, h.prepared, c.pages
from server s join host h on h.server = s.id join crawl_host c on c.host = h.id and c.crawl = %(crawl)s
where s.id = any (%(servers)s::int[]) and s.worker = %(worker)s and h.name <> all (%(known)s::text[])
    and (h.next_allowed is null or h.next_allowed <= %(soon)s)
    and ((c.ready is not null and (c.ready = '-Infinity' or not %(spent)s))
        or least(c.retry, c.revisit) <= extract(epoch from %(now)s::timestamptz))
order by c.ready nulls last, h.id limit 1000;

-- name: named_hosts
-- Hosts by name that may be asked now, with their servers; asked for a robots.txt that has moved there.
select h.server, h.name, h.next_allowed, h.reason, h.failures, h.prepared, coalesce(c.pages, 0)
from host h left join server s on s.id = h.server left join crawl_host c on c.host = h.id and c.crawl = %(crawl)s
where h.name = any (%(names)s::text[]) and (h.next_allowed is null or h.next_allowed <= %(soon)s)
    and (s.next_allowed is null or s.next_allowed <= %(soon)s)
order by h.id;

-- name: held_servers
-- Those of the servers that a worker holds, in the form of lease_take; asked with named_hosts.
select id, address, epoch, until, next_allowed, reason, asked, busy_at, false from server where id = any (%(servers)s::int[]) and worker = %(worker)s;

-- name: renew
-- Makes leases longer, and gives those that still held; asked when a quarter of their time is over.
update server set until = %(until)s where id = any (%(servers)s::int[]) and worker = %(worker)s returning id, until;

-- name: contested
-- Those of the servers that another crawl has a due URL on; asked after renew.
select id from unnest(%(servers)s::int[]) as s (id)
where exists (
    select from host h join crawl_host c on c.host = h.id and c.crawl <> %(crawl)s
    where h.server = s.id and (c.ready is not null or least(c.retry, c.revisit) <= extract(epoch from %(now)s::timestamptz)));

-- name: release
-- Gives servers back, for a moment first to other crawls if so wanted; after end_turns.
update server set worker = null, until = %(until)s, yielded = %(yielded)s where id = any (%(servers)s::int[]) and worker = %(worker)s;

-- name: end_turns
-- Puts the hosts of servers that are given back behind others that wait; before release.
-- Whose turn is over waits for the next one from now, slow and failing hosts up to an hour longer.
update crawl_host c set since = extract(epoch from %(now)s::timestamptz)
    + least(3600, 60 * greatest(0, coalesce(extract(epoch from h.next_allowed - %(now)s::timestamptz), 0)))
from host h where h.server = any (%(servers)s::int[]) and c.host = h.id and c.crawl = %(crawl)s and c.ready is not null
    and exists (select from server s where s.id = h.server and s.worker = %(worker)s);

-- name: attend
-- Says that a worker lives, and whether it wants more servers; at each heartbeat.
insert into worker (name, crawl, wanting, until, rules) values (%(worker)s, %(crawl)s, %(wanting)s, %(until)s, %(rules)s::jsonb)
on conflict (name) do update set wanting = excluded.wanting, until = excluded.until, rules = excluded.rules;

-- name: peers
-- The other living workers, how many servers each holds, and their rules; asked at each heartbeat.
select w.name, w.crawl = %(crawl)s, w.wanting, (select count(*) from server s where s.worker = w.name and s.until > %(now)s), w.rules
from worker w where w.name <> %(worker)s and w.until > %(now)s order by w.name;

-- name: leave
-- Removes a worker that ends, and those that were silent for a day; also asked by scrapy db clean.
delete from worker where name = %(worker)s or until < %(now)s::timestamptz - interval '1 day';

-- name: forget_workers
-- Removes workers that are known to be dead; before bury.
delete from worker where name = any (%(workers)s::text[]);

-- name: bury
-- Ends the leases of dead workers, with a rest for their servers; asked by the worker that found them dead.
update server set until = %(now)s, reason = 'taken over', next_allowed = greatest(next_allowed, least(until, %(rested)s))
where worker = any (%(workers)s::text[]) and until > %(now)s;
