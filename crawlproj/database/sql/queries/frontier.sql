-- The frontier: crawls, hosts, URLs, pages, and what a commit writes of them.
-- Asked by crawlproj/frontier (postgres.py, writes.py, rejudge.py, opening.py), mostly in the database
-- thread of a worker.

-- Crawls.

-- name: crawl_open
-- Adds a crawl unless it is known, and gives its id, order and depth limit; when a worker starts.
insert into crawl (name, ordering, max_depth) values (%(name)s, %(ordering)s, %(max_depth)s)
on conflict (name) do update set name = excluded.name
returning id, ordering, max_depth;

-- name: crawl_names
-- The names of all crawls, sorted; asked by commands that are not told which one is meant.
select name from crawl order by name;

-- name: crawl_named
-- A crawl's id, order and depth limit by its name; asked by commands before they open it.
select id, ordering, max_depth from crawl where name = %(name)s;

-- name: mend_host_clocks
-- Ends pauses of hosts that reach further than any we make (the clock was wrong); at the start.
update host set next_allowed = null, reason = '' where next_allowed > %(latest)s;

-- name: mend_server_clocks
-- Ends pauses and leases of servers that reach further than any we make; at the start.
update server set next_allowed = case when next_allowed <= %(latest)s then next_allowed end, until = least(until, %(now)s),
    asked = case when next_allowed <= %(latest)s then asked else '{}' end, busy_at = case when next_allowed <= %(latest)s then busy_at end
where next_allowed > %(latest)s or until > %(latest)s;

-- name: crawl_change
-- Stores another order or depth limit of a crawl; when the spider comes back with one.
update crawl set ordering = %(ordering)s, max_depth = %(max_depth)s where id = %(crawl)s;

-- name: put_crawl_delay
-- Stores the pause between two requests to a host that a crawl keeps; when a worker starts.
update crawl set delay_s = %(delay_s)s where name = %(name)s and delay_s is distinct from %(delay_s)s;

-- name: crawl_totals
-- How many pages and bytes a crawl has read; asked before leasing and refilling if it has a quota.
select pages, bytes from crawl where id = %(crawl)s;

-- name: rerank
-- Ranks the new URLs of a crawl by another order; when the spider comes back with one.
update url set rank = url_rank(%(ordering)s, depth, score, first_seen)
where crawl = %(crawl)s and lane in (1, 3);

-- name: too_deep
-- Ignores new URLs that are beyond a smaller depth limit; when the spider comes back with one.
update url set state = 'ignored', why = 'depth', lane = null, rank = null
where crawl = %(crawl)s and lane in (1, 3) and visit = 0 and state = 'new' and depth > %(max_depth)s;

-- name: deep_enough
-- Queues URLs again that a larger depth limit lets in; when the spider comes back with one.
update url set state = 'new', why = '', lane = 1,
    rank = url_rank(%(ordering)s, depth, score, first_seen)
where crawl = %(crawl)s and state = 'ignored' and why = 'depth' and (%(max_depth)s = 0 or depth <= %(max_depth)s);

-- name: all_hosts
-- The ids of all hosts of a crawl in one array; asked after its order or depth limit was changed.
select array_agg(host) from crawl_host where crawl = %(crawl)s;

-- A changed scope or revisit interval.

-- name: lock_rules
-- Whether this worker may change the rules of a crawl now, until unlock_rules; asked at the start.
select pg_try_advisory_lock(1668440434, %(crawl)s);

-- name: unlock_rules
-- Lets other workers of a crawl change its rules; after lock_rules.
select pg_advisory_unlock(1668440434, %(crawl)s);

-- name: crawl_rules
-- The scope and revisit intervals of a crawl's last start; asked at the start.
select rules from crawl where id = %(crawl)s;

-- name: put_crawl_rules
-- Stores the scope and revisit intervals of a crawl; at the start, if they have changed.
update crawl set rules = %(rules)s::jsonb where id = %(crawl)s;

-- name: judged_urls
-- URLs that a changed scope may leave out or take back, some at a time; asked when it has changed.
-- What was asked for is not judged: seeds and where they have moved to (depth 0), pushes (no parent), and requests of spiders (found 7);
-- nor feeds outside of the scope that a page within it names (found 10).
select id, canonical, state = 'ignored' and why in ('scope', 'barren') from url
where crawl = %(crawl)s and id >= (%(first)s)::bigint and request is null and depth > 0 and parent is not null
    and coalesce(found, 0) not in (7, 10) and (lane > 0 or (state = 'ignored' and why in ('scope', 'depth', 'barren')))
order by id limit %(count)s;

-- name: leave_out_urls
-- Ignores URLs that are out of a changed scope, and gives their hosts; visits and versions stay.
update url u set state = 'ignored', why = 'scope', lane = null, rank = null
from (select id from url where id = any (%(ids)s::bigint[]) order by id for no key update) n
where u.id = n.id and (u.lane > 0 or (u.state = 'ignored' and u.why = 'depth'))
returning u.host;

-- name: take_back_urls
-- Queues URLs again that a changed scope lets in, those that were read for their next visit; gives their hosts.
update url u set
    state = case when n.read then 'waiting' when n.deep then 'ignored' else 'new' end::url_state,
    why = case when n.deep and not n.read then 'depth' else '' end,
    tries = case when n.read then u.tries else 0 end,
    lane = case when n.read then 2 when n.deep then null else 1 end,
    rank = case when n.read then extract(epoch from u.next_visit) when n.deep then null
        else url_rank(%(ordering)s, u.depth, u.score, u.first_seen) end
from (
    select id, block_digest is not null and next_visit is not null as read, %(max_depth)s > 0 and depth > %(max_depth)s as deep
    from url where id = any (%(ids)s::bigint[]) order by id for no key update) n
where u.id = n.id and u.state = 'ignored' and u.why in ('scope', 'barren')
returning u.host;

-- name: outside_links
-- Links of read pages that led out of the crawl, some pages at a time; asked when its scope has grown.
select u.id, u.depth, l.other, l.other_kinds from page_links l join url u on u.id = l.url
where u.crawl = %(crawl)s and u.state = 'waiting' and l.url >= (%(first)s)::bigint and l.other <> ''
order by l.url limit %(count)s;

-- name: rescaled_urls
-- Pages with a next visit, in the scope or not, some at a time; asked when the revisit interval has changed.
select id, last_visit, next_visit, interval_s, source, visit from url
where crawl = %(crawl)s and id >= (%(first)s)::bigint and interval_s is not null
    and ((lane = 2 and state = 'waiting') or (state = 'ignored' and why = 'scope'))
    and last_visit is not null and next_visit is not null
order by id limit %(count)s;

-- name: put_intervals
-- Changes interval and next visit of pages, unless they were visited meanwhile; gives hosts of those changed.
update url u set interval_s = n.interval_s, next_visit = n.next_visit,
    rank = case when u.lane is not null then extract(epoch from n.next_visit) end
from (
    select u.id, n.interval_s, n.next_visit
    from unnest(%(id)s::bigint[], %(visit)s::int[], %(interval_s)s::float8[], %(next_visit)s::timestamptz[])
        as n (id, visit, interval_s, next_visit) join url u on u.id = n.id and u.visit = n.visit
    order by u.id for no key update of u) n
where u.id = n.id and u.crawl = %(crawl)s and ((u.lane = 2 and u.state = 'waiting') or (u.state = 'ignored' and u.why = 'scope'))
    and (u.interval_s, u.next_visit) is distinct from (n.interval_s, n.next_visit)
returning u.host;

-- Hosts that are left out.

-- name: leave_out_hosts
-- Notes hosts that links lead to and that are not part of a crawl; in commits that met new ones.
insert into left_out_host (crawl, name, url, reason, first_seen)
select %(crawl)s, name, url, reason, %(now)s from unnest(%(name)s::text[], %(url)s::text[], %(reason)s::text[]) as n (name, url, reason)
on conflict do nothing;

-- name: surplus_hosts
-- Hosts that were too many below their domain, with the first link to each; asked when the scope has grown.
select name, url from left_out_host where crawl = %(crawl)s and reason = 'domain hosts' order by name;

-- name: admit_hosts
-- Takes hosts off that list; after surplus_hosts, when they have come in.
delete from left_out_host where crawl = %(crawl)s and name = any (%(names)s::text[]);

-- name: count_left_out
-- How many hosts a crawl has left out; asked before the first is noted, and when a worker ends.
select count(*) from left_out_host where crawl = %(crawl)s;

-- Hosts.

-- name: host_ids
-- The ids of hosts by name; asked for those that add_hosts found known already.
select name, id from host where name = any (%(names)s);

-- name: host_names
-- The names of hosts by id; asked by a commit that queued URLs of hosts it was not given.
select name from host where id = any (%(hosts)s::int[]);

-- name: add_hosts
-- Adds hosts unless they are known, and gives names and ids of the new ones; in each commit with new hosts.
insert into host (name) select unnest(%(names)s::text[]) on conflict (name) do nothing returning name, id;

-- name: add_crawl_hosts
-- Makes hosts part of a crawl, at the stage that they have reached; after add_hosts.
insert into crawl_host (crawl, host, name, stage)
select %(crawl)s, id, name, case when server is null then 0 when prepared then 2 else 1 end from host where id = any (%(hosts)s::int[])
on conflict do nothing;

-- name: crawled_hosts
-- Which of these names a crawl has already; asked before domain_hosts.
select h.name from host h join crawl_host c on c.host = h.id and c.crawl = %(crawl)s where h.name = any (%(names)s::text[]);

-- name: domain_hosts
-- How many hosts below each domain a crawl has, counted up to the limit; asked before new ones are let in.
-- '~' comes after all letters of names.
select d.domain, (select count(*) from (
    select from host h join crawl_host c on c.host = h.id and c.crawl = %(crawl)s
    where reverse(h.name) collate "C" >= reverse('.' || d.domain) and reverse(h.name) collate "C" < reverse('.' || d.domain) || '~'
    limit %(most)s) n)
from unnest(%(domains)s::text[]) d (domain);

-- name: full_hosts
-- Which of these hosts are over their quota of pages or bytes; asked by each commit if there is one.
select host from crawl_host where crawl = %(crawl)s and host = any (%(hosts)s::int[])
    and ((%(host_pages)s > 0 and pages >= %(host_pages)s) or (%(host_bytes)s > 0 and bytes >= %(host_bytes)s));

-- New URLs, and links to known ones.

-- name: add_urls
-- Adds URLs that are not known yet, barred ones as forbidden, and gives what was new; in each commit.
insert into url (id, crawl, host, canonical, state, why, lane, rank, depth, score, parent, hops, request, first_seen, found, published)
select id, %(crawl)s, host, canonical, case when f.barred then 'forbidden' else state::url_state end,
    case when f.barred then 'forgotten' else why end, case when not f.barred then lane end,
    case when f.barred or lane is null then null when lane = 0 then 0 else url_rank(%(ordering)s, depth, score, first_seen) end,
    depth, score, parent, hops, request::json, first_seen, found, published
from unnest(%(id)s::bigint[], %(host)s::int[], %(canonical)s::text[], %(state)s::text[], %(why)s::text[], %(lane)s::smallint[],
    %(depth)s::int[], %(score)s::float8[], %(parent)s::bigint[], %(hops)s::smallint[], %(request)s::text[], %(found)s::smallint[],
    %(first_seen)s::timestamptz[], %(published)s::timestamptz[])
    as n (id, host, canonical, state, why, lane, depth, score, parent, hops, request, found, first_seen, published)
    cross join lateral (
        select (select exists (select from forgotten where barred)) and is_forgotten(n.canonical, n.host) as barred offset 0) f
order by id
on conflict (id) do nothing
returning id, host, lane;

-- name: nearer_urls
-- Gives known URLs a smaller depth, where one was found; in each commit.
-- What waits in backfill leaves it if it is not found as backfill again. There its score is its age.
update url u set depth = n.depth, parent = n.parent, found = n.found, score = greatest(u.score, n.score),
    lane = case when u.lane = 3 and n.lane <> 3 then 1 else u.lane end,
    rank = case when u.lane in (1, 3) then
        url_rank(%(ordering)s, n.depth, greatest(u.score, n.score), u.first_seen) else u.rank end
from unnest(%(id)s::bigint[], %(canonical)s::text[], %(depth)s::int[], %(parent)s::bigint[], %(score)s::float8[], %(found)s::smallint[],
    %(lane)s::smallint[]) as n (id, canonical, depth, parent, score, found, lane)
where u.id = n.id and u.canonical = n.canonical and n.depth < u.depth
returning u.id, u.host, u.depth;

-- name: nearer_children
-- Carries a smaller depth on to what these pages link to; after nearer_urls, ring by ring.
-- Not along links with a big letter, which are not followed. In backfill the score stays: it is the age.
update url u set depth = %(depth)s + 1, parent = p.parent,
    score = case when u.lane = 3 then u.score else greatest(u.score, 1::float8 / (2 + %(depth)s)) end,
    rank = case when u.lane = 3 then url_rank(%(ordering)s, %(depth)s + 1, u.score, u.first_seen) when u.lane = 1 then
        url_rank(%(ordering)s, %(depth)s + 1, greatest(u.score, 1::float8 / (2 + %(depth)s)), u.first_seen) else u.rank end
from (
    select k.id, min(l.url) as parent
    from page_links l cross join lateral unnest(l.known, string_to_array(l.known_kinds, null)) as k (id, letter)
    where l.url = any (%(ids)s::bigint[]) and k.letter = lower(k.letter) group by k.id
) p
where u.id = p.id and u.depth > %(depth)s + 1
returning u.id, u.host;

-- name: lift_urls
-- Lets known URLs that a source lists anew go ahead of others, and notes when known ones were published.
-- In commits that bring such.
update url u set published = coalesce(u.published, n.published), lane = case when n.lifted then 1 else u.lane end,
    score = case when n.lifted then greatest(u.score, n.score) else u.score end,
    rank = case when n.lifted then url_rank(%(ordering)s, u.depth, greatest(u.score, n.score), u.first_seen) else u.rank end
from (
    select u.id, n.score, n.published, n.hot and (u.lane is not distinct from 3 or (u.lane is not distinct from 1 and u.score < n.score)) as lifted
    from unnest(%(id)s::bigint[], %(canonical)s::text[], %(hot)s::bool[], %(score)s::float8[], %(published)s::timestamptz[])
        as n (id, canonical, hot, score, published)
        join url u on u.id = n.id and u.canonical = n.canonical
    where (u.published is null and n.published is not null) or (n.hot and (u.lane = 3 or (u.lane = 1 and u.score < n.score)))
    order by u.id for no key update of u) n
where u.id = n.id
returning u.id, u.host, n.lifted;

-- name: mark_seeds
-- Notes of known URLs that they are given as seeds now; in commits that bring seeds.
update url u set found = %(seed)s::smallint
from unnest(%(id)s::bigint[], %(canonical)s::text[]) as n (id, canonical)
where u.id = n.id and u.canonical = n.canonical and u.found is distinct from %(seed)s::smallint;

-- name: revive_urls
-- Queues known URLs again that were pushed, are to be asked again, retired or too deep; in each commit.
-- Of what callbacks request only sources are asked again. Retired ones have the time from which any link brings them back in next_visit,
-- and keep their tries: one look, if they are still gone.
-- A start request that was never visited waits among the new ones, where quotas hold; so does what was left out.
update url u set
    state = case when u.state in ('new', 'waiting', 'retry', 'gone') then u.state else 'new' end,
    tries = case when u.state in ('new', 'waiting', 'retry', 'gone') or (u.state = 'retired' and not n.urgent
        and (n.again_s is null or not (n.start or u.source))) then u.tries else 0 end,
    why = case when u.state in ('new', 'waiting', 'retry', 'gone') then u.why else '' end,
    lane = case when n.urgent or (n.again_s is not null and (n.start or u.source) and u.visit > 0) then 0 else 1 end,
    rank = case when n.urgent then 0 when n.again_s is not null and (n.start or u.source) and u.visit > 0 then url_rank('bfs', 1, 0, n.at)
        else url_rank(%(ordering)s, u.depth, u.score, u.first_seen) end,
    request = case when n.again_s is not null and n.request is not null then n.request::json else u.request end
from unnest(%(id)s::bigint[], %(canonical)s::text[], %(urgent)s::bool[], %(at)s::timestamptz[], %(again_s)s::float8[], %(start)s::bool[],
    %(request)s::text[], %(hot)s::bool[], %(found)s::smallint[], %(published)s::timestamptz[])
    as n (id, canonical, urgent, at, again_s, start, request, hot, found, published)
where u.id = n.id and u.canonical = n.canonical and (u.last_visit >= %(since)s::timestamptz) is not true
    and (u.state, u.why) is distinct from ('forbidden'::url_state, 'forgotten') and (
    (n.urgent and (u.lane is distinct from 0 or u.rank > 0))
    or (n.again_s is not null and (n.start or u.source) and (u.visit > 0 or u.lane is null) and u.lane is distinct from 0
        and (u.status > 0 and u.last_visit > n.at - make_interval(secs => n.again_s)) is not true)
    or ((n.again_s is null or not (n.start or u.source)) and ((u.state = 'retired'
            and (coalesce(u.next_visit <= n.at, true) or (n.hot and (n.found = %(link)s or n.published > u.last_visit))))
        or (u.state = 'ignored' and u.why = 'depth' and (%(max_depth)s = 0 or u.depth <= %(max_depth)s)))))
returning u.id, u.host;

-- name: revive_depths
-- Queues URLs again that a smaller depth has brought within the limit; after nearer_children.
update url u set state = 'new', why = '', lane = 1,
    rank = url_rank(%(ordering)s, depth, score, first_seen)
where id = any (%(ids)s::bigint[]) and state = 'ignored' and why = 'depth' and depth <= %(max_depth)s
returning id, host;

-- Addresses of articles.

-- name: claim_articles
-- Takes addresses for their articles, or lets them wait if enough of each go through; in commits that add URLs.
-- Only new ones that have long numbers.
insert into article_key as k (shape, number, crawl, fetched)
select shape, number, %(crawl)s, array[id] from unnest(%(shape)s::bigint[], %(number)s::bigint[], %(id)s::bigint[]) as n (shape, number, id)
order by shape, number
on conflict (shape, number) do update set
    fetched = case when cardinality(k.fetched) < %(most)s then k.fetched || excluded.fetched else k.fetched end,
    held = case when cardinality(k.fetched) < %(most)s or cardinality(k.held) >= %(most_held)s then k.held else k.held || excluded.fetched end
where not k.is_free and not (k.fetched || k.held) @> excluded.fetched
returning shape, number, fetched;

-- name: replace_address
-- Lets the next address of an article go through where one was no page; in commits with such ends.
-- The result are all that go through.
update article_key set fetched = array_remove(fetched, %(id)s::bigint) || held[1:1], held = held[2:]
where shape = %(shape)s::bigint and number = %(number)s::bigint and fetched @> array[%(id)s::bigint]
returning fetched;

-- name: lock_number
-- The addresses that wait for what becomes of others with their number; before free_number.
select held from article_key where shape = %(shape)s::bigint and number = %(number)s::bigint and not is_free for no key update;

-- name: free_number
-- Notes that a number says nothing of articles; in commits with such ends.
update article_key set is_free = true, held = '{}' where shape = %(shape)s::bigint and number = %(number)s::bigint;

-- name: lock_shape
-- The addresses that wait, of all numbers in one form of address; once for each form.
-- When it is learned that its numbers say nothing.
select held from article_key where shape = %(shape)s::bigint and not is_free order by number for no key update;

-- name: free_shape
-- Notes that no number in a form of address says anything of articles; after lock_shape.
update article_key set is_free = true, held = '{}' where shape = %(shape)s::bigint and not is_free;

-- name: queue_addresses
-- Queues addresses of articles that have waited; after the others.
update url u set state = 'new', why = '', lane = 1, rank = url_rank(%(ordering)s, u.depth, u.score, u.first_seen)
from (
    select id from url where id = any (%(ids)s::bigint[]) and state = 'ignored' and why = 'same article' order by id for no key update) n
where u.id = n.id
returning u.id, u.host;

-- Visits, pages and versions.

-- name: end_visits
-- Ends visits whose lease still holds: state, times, digests, next visit; the first thing in each commit.
-- What was read before last_read was stored has it from its last visit.
update url u set visit = u.visit + 1, state = o.state::url_state, status = o.status, why = o.why, tries = o.tries,
    next_visit = o.next_visit, interval_s = coalesce(o.interval_s, u.interval_s), moved_to = o.moved_to, last_visit = o.at,
    changes = u.changes + o.changed::int,
    last_change = case when o.changed or (o.block_digest is not null and u.block_digest is null) then o.at else u.last_change end,
    etag = case when o.block_digest is not null then o.etag when o.status between 200 and 304 then coalesce(o.etag, u.etag)
        else u.etag end,
    modified = case when o.block_digest is not null then o.modified when o.status between 200 and 304
        then coalesce(o.modified, u.modified) else u.modified end,
    body_digest = coalesce(o.body_digest, u.body_digest), block_digest = coalesce(o.block_digest, u.block_digest),
    expires = case when o.block_digest is not null then o.expires else coalesce(o.expires, u.expires) end, source = o.source,
    rate_a = coalesce(o.rate_a, u.rate_a), rate_b = coalesce(o.rate_b, u.rate_b), own_a = coalesce(o.own_a, u.own_a),
    own_b = coalesce(o.own_b, u.own_b), reads = u.reads + o.saw_page::int,
    last_read = case when o.saw_page then o.at else coalesce(u.last_read, case when u.block_digest is not null then u.last_visit end) end,
    lane = o.lane,
    rank = case when o.lane = 1 then url_rank(%(ordering)s, u.depth, u.score, u.first_seen)
        when o.lane is not null then extract(epoch from o.next_visit) end
from unnest(%(id)s::bigint[], %(visit)s::int[], %(server)s::int[], %(epoch)s::int[], %(state)s::text[], %(at)s::timestamptz[],
    %(status)s::smallint[], %(why)s::text[], %(next_visit)s::timestamptz[], %(tries)s::smallint[], %(interval_s)s::float8[],
    %(changed)s::bool[], %(moved_to)s::text[], %(etag)s::text[], %(modified)s::text[], %(lane)s::smallint[],
    %(body_digest)s::bytea[], %(block_digest)s::bytea[], %(expires)s::timestamptz[], %(source)s::bool[], %(rate_a)s::real[],
    %(rate_b)s::real[], %(own_a)s::real[], %(own_b)s::real[], %(saw_page)s::bool[])
    as o (id, visit, server, epoch, state, at, status, why, next_visit, tries, interval_s, changed, moved_to, etag, modified, lane,
        body_digest, block_digest, expires, source, rate_a, rate_b, own_a, own_b, saw_page)
    join server s on s.id = o.server and s.epoch = o.epoch and s.worker = %(worker)s
where u.id = o.id and u.visit = o.visit and u.crawl = %(crawl)s
returning u.id, u.host, u.last_change = u.last_visit, u.depth;

-- name: set_aside
-- Gives up a URL whose worker was ended by its watchdog, if that visit has not ended yet.
update url set visit = visit + 1, state = 'dead', status = %(status)s, why = %(why)s, tries = 0, next_visit = null, moved_to = null,
    last_visit = %(now)s, lane = null, rank = null
where id = %(id)s and visit = %(visit)s and crawl = %(crawl)s
returning host;

-- name: put_pages
-- Stores what was read of pages, over what was there; in each commit.
-- Where the reader is null, it stays as it is with words and language: the text is the same as before.
insert into page as p (url, at, title, content_type, charset, declared_language, length, noindex, noarchive, elapsed_s, warc_file,
    warc_offset, warc_length, warc_record, warc_digest, warc_at, kind, canonical_page, article, reader, reader_version, words, language)
select url, at, title, content_type, charset, declared_language, length, noindex, noarchive, elapsed_s, file, start, size, record, digest,
    began, kind, canonical, article, coalesce(reader, ''), coalesce(reader_version, 0::smallint), coalesce(words, 0), coalesce(language, '')
from unnest(%(url)s::bigint[], %(at)s::timestamptz[], %(title)s::text[], %(content_type)s::text[], %(charset)s::text[],
    %(declared_language)s::text[], %(length)s::int[], %(noindex)s::bool[], %(noarchive)s::bool[], %(elapsed_s)s::real[], %(file)s::text[],
    %(start)s::bigint[], %(size)s::int[], %(record)s::uuid[], %(digest)s::text[], %(began)s::timestamptz[], %(kind)s::text[],
    %(canonical)s::bigint[], %(article)s::text[], %(reader)s::text[], %(reader_version)s::smallint[], %(words)s::int[], %(language)s::text[])
    as n (url, at, title, content_type, charset, declared_language, length, noindex, noarchive, elapsed_s, file, start, size, record,
        digest, began, kind, canonical, article, reader, reader_version, words, language)
on conflict (url) do update set at = excluded.at, title = excluded.title, content_type = excluded.content_type,
    charset = excluded.charset, declared_language = excluded.declared_language, length = excluded.length,
    noindex = excluded.noindex, noarchive = excluded.noarchive, elapsed_s = excluded.elapsed_s,
    warc_file = excluded.warc_file, warc_offset = excluded.warc_offset, warc_length = excluded.warc_length,
    warc_record = excluded.warc_record, warc_digest = excluded.warc_digest, warc_at = excluded.warc_at,
    kind = excluded.kind, canonical_page = excluded.canonical_page, article = coalesce(excluded.article, p.article),
    reader = case when excluded.reader = '' then p.reader else excluded.reader end,
    reader_version = case when excluded.reader = '' then p.reader_version else excluded.reader_version end,
    language = case when excluded.reader = '' then p.language else excluded.language end,
    words = case when excluded.reader = '' then p.words else excluded.words end;

-- name: hide_pages
-- Stores of pages that were not read anew that they say noindex now; in commits with such.
update page set noindex = true where url = any (%(ids)s::bigint[]);

-- name: stored_verdicts
-- Of which pages others are copies; asked for pages whose text is as before and whose items wait.
select url, duplicate_of, duplicate_kind, similarity from page where url = any (%(ids)s::bigint[]);

-- name: put_texts
-- Stores the texts of pages, over those that were there; in each commit.
insert into page_text (url, blocks) select * from unnest(%(url)s::bigint[], %(blocks)s::bytea[])
on conflict (url) do update set blocks = excluded.blocks;

-- name: put_places
-- Stores where bodies of unchanged pages were archived again; in each commit.
update page p set warc_file = n.file, warc_offset = n.start, warc_length = n.size, warc_record = n.record, warc_digest = n.digest,
    warc_at = n.began
from unnest(%(url)s::bigint[], %(file)s::text[], %(start)s::bigint[], %(size)s::int[], %(record)s::uuid[], %(digest)s::text[],
    %(began)s::timestamptz[]) as n (url, file, start, size, record, digest, began)
where p.url = n.url;

-- name: put_versions
-- Adds versions of pages that have changed; in each commit.
insert into page_version (url, at, status, body_digest, block_digest, length, warc_file, warc_offset, warc_length, warc_record,
    warc_digest, warc_at, change, new_letters, gone_letters)
select * from unnest(%(url)s::bigint[], %(at)s::timestamptz[], %(status)s::smallint[], %(body_digest)s::bytea[],
    %(block_digest)s::bytea[], %(length)s::int[], %(file)s::text[], %(start)s::bigint[], %(size)s::int[], %(record)s::uuid[],
    %(digest)s::text[], %(began)s::timestamptz[], %(change)s::text[], %(new_letters)s::int[], %(gone_letters)s::int[])
on conflict do nothing;

-- name: put_page_states
-- Stores what the next visits of pages are compared with, and what their servers said; in each commit.
insert into page_state (url, state, modified_at, fresh_until)
select url, state, modified_at, fresh_until
from unnest(%(url)s::bigint[], %(state)s::bytea[], %(modified_at)s::timestamptz[], %(fresh_until)s::timestamptz[])
    as n (url, state, modified_at, fresh_until)
on conflict (url) do update set state = coalesce(excluded.state, page_state.state),
    modified_at = coalesce(excluded.modified_at, page_state.modified_at), fresh_until = coalesce(excluded.fresh_until, page_state.fresh_until);

-- name: count_hints
-- Counts what came of what servers said of changes; in commits with pages of which something was said.
insert into host_hint (host, hint, changed_said, changed_unsaid, same_said, same_unsaid)
select * from unnest(%(host)s::int[], %(hint)s::text[], %(changed_said)s::bigint[], %(changed_unsaid)s::bigint[],
    %(same_said)s::bigint[], %(same_unsaid)s::bigint[])
on conflict (host, hint) do update set changed_said = host_hint.changed_said + excluded.changed_said,
    changed_unsaid = host_hint.changed_unsaid + excluded.changed_unsaid,
    same_said = host_hint.same_said + excluded.same_said, same_unsaid = host_hint.same_unsaid + excluded.same_unsaid;

-- name: put_sources
-- Stores what visits have shown of sources; in commits with such.
-- `part`: how much the last gap counts in the usual one.
-- Between two visits that bring something there is a gap; what was not read keeps kind, title and entries.
insert into source as s (url, crawl, site, kind, title, first_visit, last_visit, visits, entries, new_links, last_new, newest, problem)
select url, %(crawl)s, site, coalesce(nullif(kind, ''), 'page'), title, at, at, 1, coalesce(entries, 0), new_links,
    case when new_links > 0 then at end, newest, problem
from unnest(%(url)s::bigint[], %(at)s::timestamptz[], %(kind)s::text[], %(site)s::text[], %(title)s::text[], %(entries)s::int[],
    %(newest)s::timestamptz[], %(new_links)s::int[], %(problem)s::text[])
    as n (url, at, kind, site, title, entries, newest, new_links, problem)
order by url
on conflict (url) do update set site = excluded.site, last_visit = excluded.last_visit, visits = s.visits + 1,
    kind = case when excluded.kind = 'page' then s.kind else excluded.kind end,
    title = case when excluded.title = '' then s.title else excluded.title end,
    entries = case when excluded.kind = 'page' then s.entries else excluded.entries end,
    new_links = s.new_links + excluded.new_links, last_new = coalesce(excluded.last_new, s.last_new),
    gap_s = case when s.last_new < excluded.last_new then
        coalesce(s.gap_s + %(part)s * (extract(epoch from excluded.last_new - s.last_new) - s.gap_s),
            extract(epoch from excluded.last_new - s.last_new)) else s.gap_s end,
    newest = greatest(s.newest, excluded.newest), problem = excluded.problem,
    silent_since = case when excluded.last_new is null then s.silent_since end;

-- name: retire_pages
-- Makes pages that are gone unread, and gives those that had been read; in commits with such.
update url set body_digest = null, block_digest = null, etag = null, modified = null
where id in (select id from url where id = any (%(ids)s::bigint[]) and block_digest is not null order by id for no key update)
returning id;

-- name: drop_texts
-- Deletes the texts of pages that are gone; after retire_pages.
delete from page_text where ctid = any (array(
    select t.ctid from unnest(%(ids)s::bigint[]) as i (id) cross join lateral (select ctid from page_text where url = i.id limit 1) t));

-- name: drop_links
-- Deletes the links of pages that are gone; after retire_pages.
delete from page_links where ctid = any (array(
    select l.ctid from unnest(%(ids)s::bigint[]) as i (id) cross join lateral (select ctid from page_links where url = i.id limit 1) l));

-- name: put_listed
-- Stores when sitemaps say that known pages were changed; in commits with a sitemap that says so of some.
insert into page_state (url, listed_at)
select u.id, n.listed_at from unnest(%(url)s::bigint[], %(listed_at)s::timestamptz[]) as n (url, listed_at)
    join url u on u.id = n.url and u.crawl = %(crawl)s and u.visit > 0
order by u.id
on conflict (url) do update set listed_at = excluded.listed_at where page_state.listed_at is distinct from excluded.listed_at;

-- name: put_host_texts
-- Stores the noise of hosts, and their answers to paths that nobody has; in some commits.
insert into host_text (crawl, host, noise, probe)
select %(crawl)s, h.id, n.noise, n.probe from unnest(%(name)s::text[], %(noise)s::bytea[], %(probe)s::bytea[]) as n (name, noise, probe)
    join host h on h.name = n.name
order by h.id
on conflict (host, crawl) do update set noise = coalesce(excluded.noise, host_text.noise), probe = coalesce(excluded.probe, host_text.probe);

-- name: get_host_texts
-- The same of hosts that were just leased.
select h.name, t.noise, t.probe from host h join host_text t on t.host = h.id and t.crawl = %(crawl)s where h.name = any (%(names)s::text[]);

-- name: pass_on_rates
-- Lets new URLs have what was learned of pages that have moved there for good; in commits with such.
update url t set rate_a = s.rate_a, rate_b = s.rate_b, own_a = s.own_a, own_b = s.own_b, importance = s.importance,
    interval_s = coalesce(t.interval_s, s.interval_s), last_change = coalesce(t.last_change, s.last_change), changes = t.changes + s.changes
from unnest(%(id)s::bigint[], %(heir_of)s::bigint[]) as n (id, heir_of), url s
where t.id = n.id and s.id = n.heir_of and t.crawl = %(crawl)s and s.crawl = %(crawl)s and t.id <> s.id
    and t.visit = 0 and t.rate_a is null and s.rate_a is not null;

-- name: put_links
-- Stores the links of pages, over those that were there; in each commit.
insert into page_links (url, known, known_kinds, known_texts, other, other_kinds, other_texts, details)
select url, known::bigint[], known_kinds, known_texts, other, other_kinds, other_texts, nullif(details, '')
from unnest(%(url)s::bigint[], %(known)s::text[], %(known_kinds)s::text[], %(known_texts)s::text[], %(other)s::text[],
    %(other_kinds)s::text[], %(other_texts)s::text[], %(details)s::text[])
    as l (url, known, known_kinds, known_texts, other, other_kinds, other_texts, details)
on conflict (url) do update set known = excluded.known, known_kinds = excluded.known_kinds, known_texts = excluded.known_texts,
    other = excluded.other, other_kinds = excluded.other_kinds, other_texts = excluded.other_texts, details = excluded.details;

-- name: count_pages
-- Adds pages and bytes to the counts of hosts and their crawl; in each commit.
with n as (
    select * from unnest(%(host)s::int[], %(pages)s::int[], %(bytes)s::bigint[]) as n (host, pages, bytes)
), hosts as (
    update crawl_host c set pages = c.pages + n.pages, bytes = c.bytes + n.bytes from n
    where c.crawl = %(crawl)s and c.host = n.host
)
update crawl set pages = pages + (select sum(pages) from n), bytes = bytes + (select sum(bytes) from n) where id = %(crawl)s;

-- name: ignore_over_quota
-- Ignores new URLs of hosts that are over their quota; in each commit if there is one.
update url u set state = 'ignored', why = 'quota', lane = null, rank = null
where crawl = %(crawl)s and host = any (%(hosts)s::int[]) and lane in (1, 3) and state = 'new';

-- name: lock_hosts
-- Locks the hosts of a commit in one order, so that two commits don't block each other; in each commit.
select from crawl_host where crawl = %(crawl)s and host = any (%(hosts)s::int[]) order by host for no key update;

-- name: refresh_hosts
-- Notes the best rank and times that hosts have to offer, by which they are leased; ends each commit.
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

-- robots.txt.

-- name: notify_robots
-- Tells all workers of each robots.txt that is about to change; before put_robots.
select pg_notify('crawlproj_robots', o.origin)
from unnest(%(origin)s::text[], %(body)s::text[]) as n (origin, body) join origin o on o.origin = n.origin and o.body <> n.body
where length(o.origin) < 2000;

-- name: put_robots
-- Stores robots.txt files, over older ones; in each commit that has some.
insert into origin (origin, host, status, body, fetched, expires, failures, etag, modified)
select * from unnest(%(origin)s::text[], %(host)s::text[], %(status)s::int[], %(body)s::text[], %(fetched)s::timestamptz[],
    %(expires)s::timestamptz[], %(failures)s::int[], %(etag)s::text[], %(modified)s::text[])
on conflict (origin) do update set host = excluded.host, status = excluded.status, body = excluded.body,
    fetched = excluded.fetched, expires = excluded.expires, failures = excluded.failures, etag = excluded.etag,
    modified = excluded.modified;

-- name: get_robots
-- The stored robots.txt files of origins; asked when their first URLs are refilled, and by reports.
select origin, host, status, body, fetched, expires, failures, etag, modified from origin where origin = any (%(origins)s);

-- name: forbidden_urls
-- URLs that a robots.txt forbids, some at a time; asked when it has changed.
select u.id, u.canonical from url u
where u.host = (select id from host where name = %(host)s) and u.state = 'forbidden' and u.id >= (%(first)s)::bigint
    and u.why like 'robots%%' and starts_with(u.canonical, %(root)s)
order by u.id limit %(count)s;

-- name: allow_urls
-- Queues URLs again that a changed robots.txt allows, and gives their crawls and hosts.
update url u set state = 'new', why = '', tries = 0, lane = 1,
    rank = url_rank(c.ordering, u.depth, u.score, u.first_seen)
from crawl c
where c.id = u.crawl and u.id = any (%(ids)s::bigint[]) and u.state = 'forbidden' and u.why like 'robots%%'
    and (c.max_depth = 0 or u.depth <= c.max_depth)
returning u.crawl, u.host;

-- When hosts and servers may be asked.

-- name: put_clocks
-- Stores when hosts may be asked again, and their failures; in each commit.
-- A worker whose lease has moved on can only make a rest longer.
update host h set next_allowed = n.at, reason = n.reason, failures = n.failures
from unnest(%(name)s::text[], %(at)s::timestamptz[], %(reason)s::text[], %(failures)s::int[])
    as n (name, at, reason, failures)
where h.name = n.name and (h.next_allowed is null or n.at > h.next_allowed
    or exists (select from server s where s.id = h.server and s.worker = %(worker)s));

-- name: put_server_clocks
-- Stores when servers may be asked again, and what was asked since their last pause; in each commit.
-- Only the worker that holds the lease knows what was asked.
update server s set next_allowed = n.at, reason = n.reason,
    asked = case when s.worker = %(worker)s then n.asked::jsonb else s.asked end,
    busy_at = case when s.worker = %(worker)s then n.busy_at else s.busy_at end
from unnest(%(id)s::int[], %(at)s::timestamptz[], %(reason)s::text[], %(asked)s::text[], %(busy_at)s::timestamptz[])
    as n (id, at, reason, asked, busy_at)
where s.id = n.id and (s.next_allowed is null or n.at > s.next_allowed or s.worker = %(worker)s);

-- name: prepare_hosts
-- Marks hosts whose robots.txt was read, so that they can be leased for pages; after put_robots.
with prepared as (
    update host set prepared = true where name = any (%(names)s::text[]) and not prepared
)
update crawl_host c set stage = 2 from host h where h.name = any (%(names)s::text[]) and c.host = h.id and c.stage = 1;

-- Names and addresses.

-- name: take_unresolved
-- Takes hosts without a server, best first, to look up their addresses; asked before each lease_ranked.
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
-- Takes hosts whose addresses were looked up too long ago, to look them up again; now and then.
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
-- Stores the servers of hosts whose addresses were looked up; when the resolver has some.
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

-- What is handed out, and single looks.

-- name: refill
-- The best due URLs of each host, per lane, with what a visit must know; asked at each refill.
-- Looked up one by one (limit 1): joined, a big table would be read as a whole as soon as many hosts are asked for.
-- The columns are the fields of a Ticket, by name and in their order; what else is needed stands in the last line.
select u.id, u.canonical as url, w.name as host, w.server, w.epoch, u.visit, u.lane, u.state, u.depth, u.tries, u.hops, u.changes,
    u.interval_s, u.last_visit, u.last_change, u.etag, u.modified, u.body_digest, u.block_digest, u.request, u.expires,
    coalesce(p.noarchive, false) as noarchive, coalesce(p.noindex, false) as noindex, u.found, u.source, u.lane = 0 and u.rank = 0 as pushed,
    u.rate_a, u.rate_b, u.own_a, u.own_b, u.importance, coalesce(p.kind, '') as page_kind, u.next_visit, t.state as page_state, t.listed_at, t.fresh_until,
    u.published, coalesce(k.kind, '') as source_kind,
    coalesce(u.last_read, case when u.block_digest is not null then u.last_visit end) as last_read, u.reads,
    k.last_new as source_last_new, k.gap_s as source_gap_s,
    case when u.found = 10 then coalesce((
        with recursive above as (
            select u.parent, u.found, u.host
            union select p.parent, p.found, p.host from above a join url p on p.id = a.parent where a.found = 10)
        select n.name from above a join host n on n.id = a.host where a.found is distinct from 10 limit 1), '') else '' end as named_by,
    p.warc_digest as original_digest, p.warc_at as original_at, p.warc_record as original_record, c.pages as host_pages
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
        select warc_digest, warc_at, warc_record, noarchive, noindex, kind from page where url = u.id and u.block_digest is not null limit 1) p on true
    left join lateral (
        select state, listed_at, fresh_until from page_state where url = u.id and u.block_digest is not null limit 1) t on true
    left join lateral (select kind, last_new, gap_s from source where url = u.id and u.source limit 1) k on true
order by h.id, u.lane, u.rank, u.id;

-- name: look
-- All about some URLs by id; asked for pushed URLs and by scrapy explain.
-- The columns are the fields of a StoredUrl, by name and in their order.
select u.id, u.canonical as url, h.name as host, u.state, u.lane, u.rank, u.depth, u.score, u.parent, u.visit, u.tries, u.changes,
    u.status, u.why, u.first_seen, u.last_visit, u.last_change, u.next_visit, u.interval_s, u.moved_to,
    u.found, u.source, u.published, coalesce(u.last_read, case when u.block_digest is not null then u.last_visit end) as last_read
from url u join host h on h.id = u.host where u.id = any (%(ids)s::bigint[]) and u.crawl = %(crawl)s;

-- name: seeds
-- The seeds of a crawl, oldest first; asked at the start and by commands.
select canonical from url where crawl = %(crawl)s and depth = 0 order by first_seen, id limit 10000;

-- name: counts
-- How many URLs a crawl has in each state; asked when a worker ends, for its summary.
select state, sum(number)::bigint from url_count where crawl = %(crawl)s group by state;

-- name: count_sources
-- How many pages of a crawl wait for their next visit, and how many of them are sources; asked once a minute.
select coalesce(sum(queued), 0)::bigint, coalesce(sum(sources), 0)::bigint from url_count where crawl = %(crawl)s and state = 'waiting';

-- name: sum_counts
-- Sums up what commits have counted since the last time; at the start and every thousand commits.
-- Those that another worker sums up at the same time are left to it.
with gone as (
    delete from url_count where ctid = any (array(select ctid from url_count where crawl = %(crawl)s for update skip locked))
    returning state, number, sources, queued
)
insert into url_count select %(crawl)s, state, sum(number), sum(sources), sum(queued) from gone group by state
having sum(number) <> 0 or sum(sources) <> 0 or sum(queued) <> 0;
