-- Articles: pages wait in a queue with their bodies until a process beside the crawl has taken the article from them.
-- The first two and put_held_addresses are asked in the commit that writes the pages, the others by crawlproj/articles/store.py in threads of their own.

-- name: put_article_sources
-- Queues pages that are articles and have a new text; in each commit that has some.
insert into article_queue as q (page, crawl, at, charset, body)
select page, %(crawl)s, at, charset, body
from unnest(%(page)s::bigint[], %(at)s::timestamptz[], %(charset)s::text[], %(body)s::bytea[]) as n (page, at, charset, body)
on conflict (page) do update set at = excluded.at, charset = excluded.charset, body = excluded.body, taken_by = null, taken_until = null,
    tries = 0;

-- name: drop_article_copies
-- Takes copies of known articles out of the queue: they become none.
-- In the commit that judged them, and before one is read.
-- A page stays whose own article is not sent yet. What is only to be read may turn out to be no article, so its copies wait, too.
with due as materialized (
    select url, duplicate_of from page where url = any (%(pages)s::bigint[]) and article = 'due'
), copy as (
    select d.url from due d join page o on o.url = d.duplicate_of where o.article in ('unsent', 'sent', 'copy')
        and not exists (select from article a where a.page = d.url and a.sent < a.version)
), gone as (
    delete from article_queue where page in (select url from copy)
)
update page set article = 'copy' where url in (select url from copy)
returning url;

-- name: take_articles
-- Gives a worker the next pages of the queue, for a while.
-- Those without a body are articles that are stored, and whose items are to be sent. Withdrawn: by now its page forbids to be listed.
-- Planned each time: the queue may be empty now, and very long later.
with taken as (
    select page from article_queue where crawl = %(crawl)s and (taken_until is null or taken_until < now())
    order by at, page limit %(number)s for update skip locked
), own as (
    update article_queue q set taken_by = %(worker)s, taken_until = now() + make_interval(secs => %(seconds)s)
    from taken t where q.page = t.page
    returning q.page, q.at, q.charset, q.body, q.tries
)
select o.page, u.canonical as url, o.at, o.charset, o.body, o.tries, coalesce(p.language, '') as language, p.canonical_page,
    p.duplicate_of is not null as is_copy, coalesce(p.noindex, true) or coalesce(u.expires <= now(), false) as is_withdrawn
from own o join url u on u.id = o.page left join page p on p.url = o.page;

-- name: begin_article
-- Counts a try of a page that is about to be read, unless another worker has it by now; for each page.
update article_queue set tries = tries + 1, taken_until = now() + make_interval(secs => %(seconds)s)
where page = %(page)s and at = %(at)s and taken_by = %(worker)s
returning tries;

-- name: hold_article
-- Whether a page is in the queue as it was taken, and still this worker's; before each article is stored.
-- If so, it stays so until the transaction ends.
select true from article_queue where page = %(page)s and at = %(at)s and taken_by = %(worker)s for update;

-- name: renew_articles
-- Keeps articles for longer whose items take their time in the pipelines; every twenty seconds.
update article_queue set taken_until = now() + make_interval(secs => %(seconds)s)
where page = any (%(pages)s::bigint[]) and taken_by is not null;

-- name: free_articles
-- Puts back what workers took that have ended. Pages are not to blame for it if the worker does so itself.
update article_queue set taken_by = null, taken_until = null, tries = case when %(blameless)s then 0 else tries end where taken_by = any (%(workers)s::text[])
    and page <> all (%(but)s::bigint[]);

-- name: article_takers
-- The workers that have taken articles of a crawl and not given them back; when a worker starts.
select distinct taken_by from article_queue where crawl = %(crawl)s and taken_by is not null;

-- name: lock_site_articles
-- Lets one process at a time store articles of a site, so that two with the same text agree on one.
select pg_advisory_xact_lock(%(site)s::bigint);

-- name: stored_article
-- The article that was taken from a page before.
select page, version, title, text, date, modified, fields, site, at, sent from article where page = %(page)s;

-- name: like_articles
-- Articles of the same site that may be the same as a new one; before each is stored.
-- By text, by title, or named as canonical; none that is withdrawn.
select a.page, a.title, a.text, a.named from (
    select page, title, text, false as named from (
        select * from article where text_key = %(text_key)s and page <> %(page)s limit 8) b
    union
    select page, title, text, false from (
        select * from article where title_key = %(title_key)s and page <> %(page)s limit 8) c
    union
    select page, title, text, true from article where page = %(canonical)s and page <> %(page)s) a
join page p on p.url = a.page join url u on u.id = a.page
where not p.noindex and (u.expires is null or u.expires > now());

-- name: put_article
-- Stores an article, or its new version.
insert into article as a (page, crawl, site, version, at, found_at, changed_at, title, text, date, modified, fields, title_key, text_key)
values (%(page)s, %(crawl)s, %(site)s, 1, %(at)s, now(), now(), %(title)s, %(text)s, %(date)s, %(modified)s, %(fields)s, %(title_key)s,
    %(text_key)s)
on conflict (page) do update set site = excluded.site, version = a.version + %(step)s, at = excluded.at, changed_at = excluded.changed_at,
    title = excluded.title, text = excluded.text, date = excluded.date, modified = excluded.modified, fields = excluded.fields,
    title_key = excluded.title_key, text_key = excluded.text_key
returning version;

-- name: put_article_address
-- Stores that a page has the same article as another one, if that is still there.
insert into article_address (page, article) select %(page)s, page from article where page = %(article)s for key share
on conflict (page) do update set article = excluded.article;

-- name: drop_article_address
-- Forgets that a page has the same article as another one.
delete from article_address where page = %(page)s;

-- name: is_own_page
-- Whether a page that was read is no copy of another one; for scrapy reextract.
select duplicate_of is null from page where url = %(page)s for key share;

-- name: mark_mended
-- Says that an article was taken from a page of the archive; for scrapy reextract.
with done as (
    update page set article = 'sent' where url = %(page)s and article is distinct from 'due' and article is distinct from 'unsent'
    returning url
)
update article set sent = version where page in (select url from done);

-- name: await_sending
-- Notes that an article is stored and its item is still to pass the pipelines; the worker that stored it has it.
with queue as (
    update article_queue set body = null, tries = 0, taken_until = now() + make_interval(secs => %(seconds)s)
    where page = %(page)s and at = %(at)s
)
update page set article = 'unsent' where url = %(page)s;

-- name: end_articles
-- Takes pages out of the queue and says what came of each, unless they were read again meanwhile.
with n as materialized (
    select * from unnest(%(page)s::bigint[], %(at)s::timestamptz[], %(state)s::text[], %(version)s::int[]) as n (page, at, state, version)
), gone as (
    delete from article_queue q using n where q.page = n.page and q.at = n.at returning q.page
), sent as (
    update article a set sent = n.version from n where a.page = n.page and a.sent < n.version
)
update page p set article = n.state from n, gone where p.url = n.page and gone.page = n.page;

-- name: article_addresses
-- All addresses of an article, the canonical one first; for each item.
select address from article_urls(%(page)s);

-- name: put_held_addresses
-- Stores addresses that are held back, each with its article's page; in commits that have found some.
insert into held_address (id, page, url) select * from unnest(%(id)s::bigint[], %(page)s::bigint[], %(url)s::text[])
on conflict (id) do nothing;

-- name: export_articles
-- Articles of a crawl with all addresses, the canonical one first, as they changed; for scrapy export.
-- Pages that forbid by now to be listed are left out.
-- Piece by piece: from a moment and a page on.
select a.page, a.changed_at, a.title, a.text, a.date, a.modified, a.fields, a.site, a.version, p.language,
    array(select address from article_urls(a.page)) as addresses
from article a join page p on p.url = a.page join url u on u.id = a.page
where a.crawl = %(crawl)s and (a.changed_at, a.page) > (%(since)s, %(after)s)
    and not p.noindex and (u.expires is null or u.expires > now())
order by a.changed_at, a.page limit %(limit)s;
