-- Cleaning: scrapy db clean. Asked by crawlproj/upkeep/clean.py.

-- name: retention_current
-- The bodies that stay whatever their age: what the next visits compare with, and last versions.
select url, warc_at from page where url = any (%(ids)s::bigint[]) and warc_at is not null
union select v.url, v.warc_at from (
    select distinct on (url) url, warc_at from page_version where url = any (%(ids)s::bigint[]) order by url, at desc) v
where v.warc_at is not null;

-- name: retention_versions
-- Old versions without a record in the archive, to be deleted or counted by scrapy db clean.
-- The last one of a page stays, unless none is to, and the first or last of each period if asked for.
select url, at from (
    select url, at, warc_file, row_number() over (partition by url order by at desc) as back,
        row_number() over (partition by url, date_trunc(%(per)s, at) order by at) as first,
        row_number() over (partition by url, date_trunc(%(per)s, at) order by at desc) as last
    from page_version) v
where warc_file is null and at < %(cutoff)s and (back > 1 or %(strict)s) and not (%(first)s and first = 1) and not (%(last)s and last = 1)
order by url, at;

-- name: retention_drop_versions
-- Deletes versions, unless they are in the archive by now; after retention_versions.
delete from page_version v using unnest(%(url)s::bigint[], %(at)s::timestamptz[]) as n (url, at)
where v.url = n.url and v.at = n.at and v.warc_file is null;

-- name: retention_dead
-- URLs given up long ago and never read, seeds aside, to be deleted or counted by scrapy db clean.
select u.id from url u
where u.state in ('dead', 'retired') and u.lane is null and u.depth > 0 and u.last_visit < %(cutoff)s
    and not exists (select from page p where p.url = u.id) and not exists (select from page_version v where v.url = u.id)
order by u.id;

-- name: retention_drop_urls
-- Deletes URLs that were given up, unless they were read or queued meanwhile; after retention_dead.
delete from url u where u.id = any (%(ids)s::bigint[]) and u.state in ('dead', 'retired') and u.lane is null
    and not exists (select from page p where p.url = u.id);
