-- Duplicates: which pages are copies of which.
-- Asked by crawlproj/duplicates/postgres.py in the database thread of a worker, in the commit that writes the pages.

-- name: lock_duplicates
-- Lets one commit at a time say which pages are originals; the last thing but that in a commit.
select pg_advisory_xact_lock(77, %(scope)s);

-- name: find_exact
-- Originals with the same bytes or else the same text as pages; before each commit and under its lock.
select q.page, coalesce(b.page, t.page) as original, b.page is not null as same_bytes
from unnest(%(page)s::bigint[], %(body)s::bigint[], %(text)s::bigint[]) as q (page, body, text)
    left join lateral (select e.page from exact e where e.body = q.body and e.page <> q.page limit 1) b on true
    left join lateral (select e.page from exact e where b.page is null and e.text = q.text and e.page <> q.page limit 1) t on true
where b.page is not null or t.page is not null;

-- name: find_bands
-- Originals that share bands with pages, the eight with most bands for each; as find_exact.
with q as materialized (
    select * from unnest(%(page)s::bigint[], %(h1)s::bigint[], %(h2)s::bigint[], %(h3)s::bigint[], %(h4)s::bigint[], %(h5)s::bigint[],
        %(h6)s::bigint[], %(h7)s::bigint[], %(h8)s::bigint[]) as q (page, h1, h2, h3, h4, h5, h6, h7, h8)
), found as materialized (
    select q.page, b.page as other from q cross join lateral (select page from band where h1 = q.h1 limit 8) b
    union all select q.page, b.page from q cross join lateral (select page from band where h2 = q.h2 limit 8) b
    union all select q.page, b.page from q cross join lateral (select page from band where h3 = q.h3 limit 8) b
    union all select q.page, b.page from q cross join lateral (select page from band where h4 = q.h4 limit 8) b
    union all select q.page, b.page from q cross join lateral (select page from band where h5 = q.h5 limit 8) b
    union all select q.page, b.page from q cross join lateral (select page from band where h6 = q.h6 limit 8) b
    union all select q.page, b.page from q cross join lateral (select page from band where h7 = q.h7 limit 8) b
    union all select q.page, b.page from q cross join lateral (select page from band where h8 = q.h8 limit 8) b
)
select page, other from (
    select page, other, row_number() over (partition by page order by count(*) desc, other) as place
    from found where other <> page group by page, other) f
where place <= 8;

-- name: stored_texts
-- The stored texts of pages that others are compared with.
select url, blocks from page_text where url = any (%(ids)s::bigint[]);

-- name: note_orphans
-- Notes copies of pages that have another text now, or are gone: they are to be judged anew; in such commits.
-- Pages of the commit itself are judged anyway.
with judged as (
    delete from unjudged where page = any (%(judged)s::bigint[])
)
insert into unjudged select url from page where duplicate_of = any (%(originals)s::bigint[]) and url <> all (%(judged)s::bigint[])
order by url on conflict do nothing;

-- name: take_orphans
-- Some of the pages that are to be judged anew, with all that they are judged by; in a commit.
-- Those that another worker has are left to it.
with taken as (
    delete from unjudged where page = any (array(
        select n.page from unjudged n join url u on u.id = n.page where %(crawl)s::int is null or u.crawl = %(crawl)s
        order by n.page limit %(most)s for update of n skip locked))
    returning page
)
select p.url, u.host, h.name, u.body_digest, u.block_digest, t.blocks
from taken n join page p on p.url = n.page join url u on u.id = p.url join host h on h.id = u.host left join page_text t on t.url = p.url
order by p.url;

-- name: hosts_of_pages
-- The hosts of pages, by name and number; asked with stored_texts, and for pages whose items wait.
select u.id, h.name, h.id from url u join host h on h.id = u.host where u.id = any (%(ids)s::bigint[]);

-- name: drop_paragraphs
-- Forgets that pages have paragraphs which they have no longer; in a commit, before know_paragraphs.
delete from paragraph p using unnest(%(hash)s::bigint[], %(page)s::bigint[]) as n (hash, page) where p.hash = n.hash and p.page = n.page;

-- name: know_paragraphs
-- Remembers the paragraphs of pages, and gives where else each stands; in a commit, before its lock.
-- Of a copy, its original stands for it.
-- A paragraph is counted once per page, by the page's first text, up to 5. Rows that need no change are not touched.
with q as materialized (
    select * from unnest(%(hash)s::bigint[], %(host)s::int[], %(page)s::bigint[], %(first)s::bool[]) as q (hash, host, page, first)
), known as materialized (
    select q.hash, q.page, p.page as other, p.host = q.host as own, p.number from q cross join lateral (
        select * from paragraph where hash = q.hash order by (host = q.host) desc limit 4) p
), kept as (
    insert into paragraph as p (hash, host, page, number)
    select q.hash, q.host, min(q.page), least(count(*), 5) from q
    where not exists (select from known k where k.hash = q.hash and k.page = q.page and k.own
        and (k.number >= 5 or k.other = q.page or not q.first))
    group by q.hash, q.host order by q.hash, q.host
    on conflict (hash, host) do update set number = least(p.number + excluded.number, 5) where p.number < 5
)
select k.page, k.hash, coalesce(nullif(g.duplicate_of, k.page), k.other) as original, u.host, k.number
from known k left join page g on g.url = k.other left join url u on u.id = coalesce(nullif(g.duplicate_of, k.page), k.other)
where k.other <> k.page;

-- name: find_paragraphs
-- Where else the paragraphs of pages stand, without remembering anything; for pages whose items wait.
with q as materialized (
    select q.hash, q.page, u.host from unnest(%(hash)s::bigint[], %(page)s::bigint[]) as q (hash, page) join url u on u.id = q.page
)
select q.page, q.hash, coalesce(nullif(g.duplicate_of, q.page), p.page), u.host, p.number
from q cross join lateral (select * from paragraph where hash = q.hash order by (host = q.host) desc limit 4) p
    left join page g on g.url = p.page left join url u on u.id = coalesce(nullif(g.duplicate_of, q.page), p.page) where p.page <> q.page;

-- name: put_exact
-- Stores the digests of originals; under the lock.
insert into exact (page, body, text) select * from unnest(%(page)s::bigint[], %(body)s::bigint[], %(text)s::bigint[])
on conflict (page) do update set body = excluded.body, text = excluded.text;

-- name: put_bands
-- Stores the bands of originals; under the lock.
insert into band (page, h1, h2, h3, h4, h5, h6, h7, h8)
select * from unnest(%(page)s::bigint[], %(h1)s::bigint[], %(h2)s::bigint[], %(h3)s::bigint[], %(h4)s::bigint[], %(h5)s::bigint[],
    %(h6)s::bigint[], %(h7)s::bigint[], %(h8)s::bigint[])
on conflict (page) do update set h1 = excluded.h1, h2 = excluded.h2, h3 = excluded.h3, h4 = excluded.h4, h5 = excluded.h5,
    h6 = excluded.h6, h7 = excluded.h7, h8 = excluded.h8;

-- name: drop_marks
-- Forgets the digests of pages that are no originals any more; under the lock.
with digests as (
    delete from exact where page = any (%(ids)s::bigint[])
)
delete from band where page = any (%(bandless)s::bigint[]);

-- name: put_verdicts
-- Stores of which pages others are copies, or that they are none any more; under the lock.
-- Where no archive is written there is nothing to note.
update page p set duplicate_of = n.original, duplicate_kind = n.kind, similarity = n.similarity, noted = n.original is null or not %(archived)s
from unnest(%(page)s::bigint[], %(original)s::bigint[], %(kind)s::text[], %(similarity)s::real[]) as n (page, original, kind, similarity)
where p.url = n.page
    and (p.duplicate_of, p.duplicate_kind, p.similarity) is distinct from (n.original, n.kind, n.similarity);

-- name: put_known_shares
-- Stores how much of the long paragraphs of pages stands on others, with page and version; in a commit.
with n as materialized (
    select * from unnest(%(page)s::bigint[], %(at)s::timestamptz[], %(share)s::real[]) as n (page, at, share)
), versions as (
    update page_version v set known_share = n.share from n where v.url = n.page and v.at = n.at
)
update page p set known_share = n.share from n where p.url = n.page and p.known_share is distinct from n.share;

-- name: drop_clusters
-- Forgets clusters whose first page, or the one that stands for all, is judged anew; under the lock.
-- Gives the first pages of the latter.
with dropped as (
    delete from cluster where original = any (%(ids)s::bigint[])
)
delete from cluster c using unnest(%(ids)s::bigint[]) n (page) cross join lateral (select duplicate_of from page where url = n.page limit 1) p
where c.original = p.duplicate_of and c.kept = n.page and c.original <> all (%(ids)s::bigint[])
returning c.original;

-- name: members
-- Copies of pages, some of them: one is to stand for all, as another one has left; under the lock.
select url, duplicate_of from page where duplicate_of = any (%(originals)s::bigint[]) order by duplicate_of, url limit 1000;

-- name: put_clusters
-- Says which page stands for all of a cluster that has got new members; under the lock.
-- Pages are looked up by their own key (limit 1): a cluster may have very many members.
-- One that a member names by rel=canonical, else the one that was last seen changed, else the one with the shortest URL.
with joined as materialized (
    select n.page, n.original, p.canonical_page as canonical from unnest(%(page)s::bigint[], %(original)s::bigint[]) as n (page, original)
        join page p on p.url = n.page
), candidate as (
    select original, original as page, false as named from joined
    union all select c.original, c.kept, c.named from cluster c join page k on k.url = c.kept
        where c.original in (select original from joined) and (c.kept = c.original or k.duplicate_of = c.original)
    union all select original, page, false from joined
    union all select j.original, j.canonical, true from joined j join page m on m.url = j.canonical
        where m.url = j.original or m.duplicate_of = j.original
    union all select j.original, m.url, true from (select distinct original from joined) j
        cross join lateral (select canonical_page from page where url = j.original limit 1) o
        cross join lateral (select url, duplicate_of from page where url = o.canonical_page limit 1) m
        where m.duplicate_of = j.original
), best as (
    select distinct on (c.original) c.original, c.page, c.named from candidate c join url u on u.id = c.page
    order by c.original, c.named desc, case when u.changes > 0 then u.last_change end desc nulls last, length(u.canonical), u.id
)
insert into cluster as k (original, kept, named) select original, page, named from best
on conflict (original) do update set kept = excluded.kept, named = excluded.named
where (k.kept, k.named) is distinct from (excluded.kept, excluded.named);

-- name: put_duplicate_scheme
-- Stores how the marks of a crawl are made, and gives how they were made before; when a worker starts.
update crawl c set duplicate_scheme = %(scheme)s from crawl b where c.id = %(crawl)s and b.id = c.id
returning b.duplicate_scheme;

-- name: unnoted
-- Copies that the archive has no record of, some of them, with the URLs of their originals; now and then.
-- Those that another worker writes at the same time are left to it. One by one (limit 1): joined, all URLs would be read.
select p.url, u.canonical, p.duplicate_of, o.canonical, p.duplicate_kind, p.similarity, p.warc_record
from page p cross join lateral (select canonical from url where id = p.url and crawl = %(crawl)s limit 1) u
    cross join lateral (select canonical from url where id = p.duplicate_of limit 1) o
where not p.noted limit 500 for update of p skip locked;

-- name: mark_noted
-- Notes that the archive has a record of copies; when it is on disk.
update page set noted = true where url = any (%(ids)s::bigint[]);
