-- Pages from elsewhere: scrapy warc import. Asked by crawlproj/upkeep/imported_history.py.

-- name: import_known
-- The versions that are known of these URLs; asked before captures are replayed.
select url, at, warc_at, body_digest, block_digest from page_version where url = any (%(ids)s::bigint[]);

-- name: import_urls
-- Adds URLs with their history, or updates older ones; gives ids, hosts, and which are new; for each batch.
-- A later visit of our own counts more. The end of a visit that is under way comes too late.
insert into url as u (id, crawl, host, canonical, state, why, lane, rank, depth, score, visit, tries, changes, status, first_seen,
    last_visit, last_change, next_visit, interval_s, block_digest, moved_to, expires, found, source)
select id, %(crawl)s, host, canonical, state::url_state, why, lane, case when lane is not null then extract(epoch from next_visit) end,
    depth, score, visit, tries, changes, status, first_seen, last_visit, last_change, next_visit, interval_s, block_digest, moved_to,
    expires, found, source
from unnest(%(id)s::bigint[], %(host)s::int[], %(canonical)s::text[], %(state)s::text[], %(why)s::text[], %(lane)s::smallint[],
    %(depth)s::int[], %(score)s::float8[], %(visit)s::int[], %(tries)s::smallint[], %(changes)s::int[], %(status)s::smallint[],
    %(first_seen)s::timestamptz[], %(last_visit)s::timestamptz[], %(last_change)s::timestamptz[], %(next_visit)s::timestamptz[],
    %(interval_s)s::float8[], %(block_digest)s::bytea[], %(moved_to)s::text[], %(expires)s::timestamptz[],
    %(found)s::smallint[], %(source)s::bool[])
    as n (id, host, canonical, state, why, lane, depth, score, visit, tries, changes, status, first_seen, last_visit, last_change,
        next_visit, interval_s, block_digest, moved_to, expires, found, source)
where not is_forgotten(canonical, host)
order by id
on conflict (id) do update set visit = u.visit + 1, state = excluded.state, why = excluded.why, tries = excluded.tries,
    lane = case when u.lane = 0 then u.lane else excluded.lane end, rank = case when u.lane = 0 then u.rank else excluded.rank end,
    changes = greatest(u.changes, excluded.changes), status = excluded.status, first_seen = least(u.first_seen, excluded.first_seen),
    last_visit = excluded.last_visit, last_change = excluded.last_change, next_visit = excluded.next_visit,
    interval_s = excluded.interval_s, block_digest = coalesce(excluded.block_digest, u.block_digest), body_digest = null, etag = null,
    modified = null, moved_to = excluded.moved_to, expires = excluded.expires, source = excluded.source,
    last_read = null
where u.canonical = excluded.canonical and u.request is null and (u.last_visit is null or u.last_visit < excluded.last_visit)
returning u.id, u.host, u.xmax = 0;

-- name: import_pages
-- Stores the last reading of each imported page, unless a later one is known; for each batch.
insert into page as p (url, at, title, content_type, charset, declared_language, length, noindex, noarchive, elapsed_s, warc_file, warc_offset,
    warc_length, warc_record, warc_digest, warc_at)
select n.url, n.at, title, content_type, charset, language, length, noindex, noarchive, 0, file, start, size, record, digest, began
from unnest(%(url)s::bigint[], %(at)s::timestamptz[], %(title)s::text[], %(content_type)s::text[], %(charset)s::text[],
    %(language)s::text[], %(length)s::int[], %(noindex)s::bool[], %(noarchive)s::bool[], %(file)s::text[], %(start)s::bigint[],
    %(size)s::int[], %(record)s::uuid[], %(digest)s::text[], %(began)s::timestamptz[])
    as n (url, at, title, content_type, charset, language, length, noindex, noarchive, file, start, size, record, digest, began)
where exists (select from url u where u.id = n.url and u.why <> 'forgotten')
on conflict (url) do update set at = excluded.at, title = excluded.title, content_type = excluded.content_type,
    charset = excluded.charset, declared_language = excluded.declared_language, length = excluded.length, noindex = excluded.noindex,
    noarchive = excluded.noarchive, warc_file = excluded.warc_file, warc_offset = excluded.warc_offset,
    warc_length = excluded.warc_length, warc_record = excluded.warc_record, warc_digest = excluded.warc_digest, warc_at = excluded.warc_at
where p.at < excluded.at and p.warc_at is distinct from excluded.warc_at;

-- name: import_versions
-- Adds the versions that imported pages have had; for each batch.
insert into page_version (url, at, status, body_digest, block_digest, length, warc_file, warc_offset, warc_length, warc_record,
    warc_digest, warc_at)
select n.* from unnest(%(url)s::bigint[], %(at)s::timestamptz[], %(status)s::smallint[], %(body_digest)s::bytea[],
    %(block_digest)s::bytea[], %(length)s::int[], %(file)s::text[], %(start)s::bigint[], %(size)s::int[], %(record)s::uuid[],
    %(digest)s::text[], %(began)s::timestamptz[])
    as n (url, at, status, body_digest, block_digest, length, file, start, size, record, digest, began)
where exists (select from url u where u.id = n.url and u.why <> 'forgotten')
on conflict do nothing;
