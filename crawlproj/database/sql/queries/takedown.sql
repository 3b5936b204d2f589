-- Taking down: scrapy forget, and how workers hear of it.
-- Asked by crawlproj/upkeep (takedown.py, warc_rewrite.py), and by workers where it says so.

-- name: takedown_fence
-- Waits for all who add URLs, and lets them wait; before rules are stored or undone.
-- Whoever adds URLs is waited for; who comes after this transaction sees what it wrote.
lock table url in share row exclusive mode;

-- name: takedown_ask
-- Stores rules, and gives their ids; one that is in force already is to be carried out again.
insert into forgotten (what, reason, barred, asked) select w, %(reason)s, %(barred)s, clock_timestamp() from unnest(%(what)s::text[]) w
on conflict (what) where barred do update set ended = null,
    reason = case when excluded.reason = '' then forgotten.reason else excluded.reason end
returning id;

-- name: takedown_rules
-- All rules ever, with what they removed; asked by scrapy forget and before rules are carried out.
select id, what, reason, barred, asked, ended, undone, urls, versions, records, cardinality(files) from forgotten order by id;

-- name: takedown_in_force
-- The rules that workers obey; asked by a worker at its start and at each call.
-- What is barred, and of what only the past was removed in the last days: a request that was on its way may still speak of it.
select id, what, reason, barred, asked from forgotten where barred or asked > clock_timestamp() - interval '3 days' order by id;

-- name: takedown_call
-- Calls all workers to read the rules anew and close their WARC files; gives the call's number.
select nextval('crawlproj.worker_call');

-- name: takedown_last_call
-- The number of the last call; asked by each worker every few seconds.
select case when is_called then last_value else 0 end from worker_call;

-- name: takedown_heard
-- Notes that a worker has obeyed a call, its file closed and all of it stored; asked by the worker.
update worker set heard = %(call)s where name = %(worker)s;

-- name: takedown_deaf
-- Living workers that have not obeyed a call yet; asked until there is none.
select name from worker where until > clock_timestamp() and heard < %(call)s order by name;

-- name: takedown_hosts
-- Hosts by name, and all hosts below domains; asked to find what rules mean.
select id, name from host where name = any (%(names)s::text[])
union select h.id, h.name from unnest(%(domains)s::text[]) d (domain) join host h
    on reverse(h.name) collate "C" >= reverse('.' || d.domain) and reverse(h.name) collate "C" < reverse('.' || d.domain) || '~'
order by name;

-- name: takedown_urls
-- The ids of all URLs of whole hosts, and of single URLs on some hosts, in all crawls; asked for each rule.
select id from url where host = any (%(hosts)s::int[])
    or (host = any (%(some)s::int[]) and canonical = any (%(urls)s::text[])) order by id;

-- name: takedown_bar
-- Bars URLs and empties what was known of them, and gives crawls and hosts; for rules that bar.
-- The end of a visit that is under way comes too late.
update url set visit = visit + 1, state = 'forbidden', why = 'forgotten', lane = null, rank = null, tries = 0, status = 0, changes = 0,
    last_change = null, next_visit = null, interval_s = null, etag = null, modified = null, body_digest = null, block_digest = null,
    moved_to = null, expires = null
where id = any (%(ids)s::bigint[]) and request is null and (why <> 'forgotten' or state <> 'forbidden')
returning crawl, host;

-- name: takedown_requests
-- Deletes requests of a spider's own among these URLs; with takedown_bar.
delete from url where id = any (%(ids)s::bigint[]) and request is not null returning crawl, host;

-- name: takedown_blank
-- Empties what was known of URLs until a time, and gives crawls and hosts; for rules that don't bar.
-- It is still visited; what was read until then is gone.
update url set visit = visit + 1, changes = 0, last_change = null, etag = null, modified = null, body_digest = null,
    block_digest = null, moved_to = null, expires = null
where id = any (%(ids)s::bigint[]) and (last_visit is null or last_visit <= %(until)s)
returning crawl, host;

-- name: takedown_versions
-- Deletes versions of pages until a time; for each rule.
delete from page_version where url = any (%(ids)s::bigint[]) and at <= %(until)s;

-- name: takedown_queued
-- Takes pages out of the queue of articles, those of a time; for each rule, first of all.
-- Who has one stores its article before this, or not at all.
delete from article_queue where page = any (%(ids)s::bigint[]) and at <= %(until)s;

-- name: takedown_articles
-- Deletes the articles of pages, those of a time; for each rule, when none of them can be stored any more.
-- Other pages with the same article are read as if for the first time at their next visit: then it is theirs.
with gone as (
    delete from article where page = any (%(ids)s::bigint[]) and at <= %(until)s returning page
), addresses as (
    delete from article_address where page = any (%(ids)s::bigint[]) or article in (select page from gone) returning page
)
update url set visit = visit + 1, etag = null, modified = null, body_digest = null, block_digest = null
where id in (select page from addresses) and id <> all (%(ids)s::bigint[]);

-- name: takedown_pages
-- Deletes pages with their links, texts and all that they are compared by, until a time; for each rule.
-- Their copies are nobody's copies then, and are judged anew by the next worker; those of articles are read anew, as their article was
-- the one that goes. A paragraph is known by its hash, so its page is looked for in the whole table.
with gone as (
    delete from page where url = any (%(ids)s::bigint[]) and at <= %(until)s returning url
), texts as (
    delete from page_text where url in (select url from gone)
), states as (
    delete from page_state where url in (select url from gone)
), digests as (
    delete from exact where page in (select url from gone)
), bands as (
    delete from band where page in (select url from gone)
), paragraphs as (
    delete from paragraph where page in (select url from gone)
), clusters as (
    delete from cluster where original in (select url from gone)
), kept as (
    update cluster set kept = original, named = false where kept in (select url from gone) and original not in (select url from gone)
), addresses as (
    delete from held_address where page in (select url from gone)
), copies as (
    update page set duplicate_of = null, duplicate_kind = null, similarity = null, noted = true
    where duplicate_of = any (%(ids)s::bigint[]) and duplicate_of in (select url from gone) and url <> all (%(ids)s::bigint[])
    returning url, article
), anew as (
    update url set visit = visit + 1, etag = null, modified = null, body_digest = null, block_digest = null
    where id in (select url from copies where article = 'copy')
), unjudged as (
    insert into unjudged select url from copies on conflict do nothing
)
delete from page_links where url in (select url from gone);

-- name: takedown_origins
-- Deletes the robots.txt files of hosts until a time, and what is known of their texts; for each rule.
with texts as (
    delete from host_text where host in (select id from host where name = any (%(names)s::text[]))
)
delete from origin where host = any (%(names)s::text[]) and fetched <= %(until)s;

-- name: takedown_counted
-- Adds what was removed to a rule's figures; for each batch of its URLs.
update forgotten set urls = urls + %(urls)s, versions = versions + %(versions)s where id = %(id)s;

-- name: takedown_places
-- Pages and versions whose bodies are in these WARC files; asked before the files are rewritten.
select 'page', url, warc_file, warc_offset from page where warc_file = any (%(files)s::text[])
union all select 'version', url, warc_file, warc_offset from page_version where warc_file = any (%(files)s::text[]);

-- name: takedown_move_pages
-- Points pages to the new place of their bodies, or to none; after a WARC file was rewritten.
update page p set warc_file = n.file, warc_offset = n.start, warc_length = n.size,
    warc_record = case when n.file is not null then warc_record end, warc_digest = case when n.file is not null then warc_digest end,
    warc_at = case when n.file is not null then warc_at end
from unnest(%(url)s::bigint[], %(old)s::bigint[], %(file)s::text[], %(start)s::bigint[], %(size)s::int[]) as n (url, old, file, start, size)
where p.url = n.url and p.warc_file = %(from)s and p.warc_offset = n.old;

-- name: takedown_read_anew
-- Has pages read in full at their next visit; when a rewritten WARC file has lost their body.
-- A visit that is under way comes too late. What their text is compared with stays, and so does their pace.
update url set visit = visit + 1, etag = null, modified = null, body_digest = null where id = any (%(ids)s::bigint[]);

-- name: takedown_move_versions
-- Points versions to the new place of their bodies; after a WARC file was rewritten.
update page_version p set warc_file = n.file, warc_offset = n.start, warc_length = n.size
from unnest(%(url)s::bigint[], %(old)s::bigint[], %(file)s::text[], %(start)s::bigint[], %(size)s::int[]) as n (url, old, file, start, size)
where p.url = n.url and p.warc_file = %(from)s and p.warc_offset = n.old;

-- name: takedown_drop_versions
-- Deletes versions whose bodies are gone; after a WARC file was rewritten.
delete from page_version p using unnest(%(url)s::bigint[], %(old)s::bigint[]) as n (url, old)
where p.url = n.url and p.warc_file = %(from)s and p.warc_offset = n.old;

-- name: takedown_rewrote
-- Adds a file and its removed records to the figures of rules; after a WARC file was rewritten.
-- Once for each file, however often it is done.
update forgotten f set records = f.records + n.records, files = f.files || %(file)s::text
from unnest(%(what)s::text[], %(records)s::bigint[]) as n (what, records)
where f.what = n.what and f.ended is null and not %(file)s = any (f.files);

-- name: takedown_ended
-- Notes that rules were carried out; after the last WARC file.
update forgotten set ended = clock_timestamp() where id = any (%(ids)s::int[]);

-- name: takedown_undo
-- Lifts the bar of rules, and gives those that had one; for scrapy forget --undo.
update forgotten set barred = false, undone = clock_timestamp() where barred and what = any (%(what)s::text[]) returning what;

-- name: takedown_allow
-- Queues URLs again that were barred, and gives their crawls and hosts; after takedown_undo.
-- Unless another rule bars it, or it is too deep.
update url u set state = case when c.max_depth = 0 or u.depth <= c.max_depth then 'new' else 'ignored' end::url_state,
    why = case when c.max_depth = 0 or u.depth <= c.max_depth then '' else 'depth' end,
    lane = case when c.max_depth = 0 or u.depth <= c.max_depth then 1 end,
    rank = case when c.max_depth = 0 or u.depth <= c.max_depth
        then url_rank(c.ordering, u.depth, u.score, u.first_seen) end
from crawl c
where c.id = u.crawl and u.id = any (%(ids)s::bigint[]) and u.state = 'forbidden' and u.why = 'forgotten'
    and not is_forgotten(u.canonical, u.host)
returning u.crawl, u.host;

-- name: takedown_why
-- The rule that bars one of these names, be they known to a crawl or not; for scrapy explain.
select what, reason, asked, ended from forgotten where barred and what = any (%(names)s::text[]) order by id limit 1;

-- name: takedown_preview
-- How many URLs, pages and versions would go; for scrapy forget -n.
select (select count(*) from url where id = any (%(ids)s::bigint[])), (select count(*) from page where url = any (%(ids)s::bigint[])),
    (select count(*) from page_version where url = any (%(ids)s::bigint[]));

-- name: takedown_neighbours
-- A few hosts below domains; scrapy forget names them, as they stay.
select name from unnest(%(domains)s::text[]) d (domain) join host h
    on reverse(h.name) collate "C" >= reverse('.' || d.domain) and reverse(h.name) collate "C" < reverse('.' || d.domain) || '~'
order by name limit 4;
