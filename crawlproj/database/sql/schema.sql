-- The present schema. A change here comes with a numbered migration that leads an older database to the same place.
create schema if not exists crawlproj;
set local search_path = crawlproj;

create table migration (
    number int primary key,
    name text not null,
    applied timestamptz not null default now()
);

-- A named frontier. Many share one database. `rules`: scope and revisit intervals of the last start. `duplicate_scheme`: how the numbers
-- in `exact`, `band` and `paragraph` were made; others can't be compared with them. `page_price` and `source_price`: what a visit must be
-- worth, moved by all workers so that the crawl spends what it may (revisit/price.py).
create table crawl (
    id int generated always as identity primary key,
    name text not null unique,
    ordering text not null,
    max_depth int not null,
    pages bigint not null default 0,
    bytes bigint not null default 0,
    created timestamptz not null default now(),
    rules jsonb,
    delay_s float8,
    duplicate_scheme text,
    page_price float8,
    source_price float8
);

-- Hosts that links lead to and that are not part of a crawl: the first such link, and why. Not all of them: their number is limited.
create table left_out_host (
    crawl int not null references crawl on delete cascade,
    name text not null collate "C",
    url text not null,
    reason text not null,
    first_seen timestamptz not null,
    primary key (crawl, name)
);

-- A pinned address: what is leased. `epoch` grows with each lease, so that ends of an older one are known as late. `asked`: how often each
-- of its hosts was asked since its last general pause; `busy_at`: when a request was last under way.
create table server (
    id int generated always as identity primary key,
    address text not null unique,
    worker text,
    epoch int not null default 0,
    until timestamptz not null default '-infinity',
    yielded int,
    next_allowed timestamptz,
    reason text not null default '',
    asked jsonb not null default '{}',
    busy_at timestamptz
);
-- Those that are leased or just given back for others: few, however many there are in all.
create index server_held on server (id) where worker is not null or yielded is not null;

-- A worker that lives: it says so again and again. `wanting`: it found no server to lease. `heard`: the last call that it has obeyed.
-- `rules`: its rules of politeness, by the names of their settings.
create table worker (
    name text primary key,
    crawl int not null references crawl on delete cascade,
    wanting bool not null,
    until timestamptz not null,
    heard bigint not null default 0,
    rules jsonb not null default '{}'
);
-- Calls to all workers: read anew what is forgotten, and close the WARC file that you write.
create sequence worker_call;

-- A host name, its clock, and the server that it was last found on. Hosts and servers are shared by all crawls.
create table host (
    id int generated always as identity primary key,
    name text not null unique,
    server int references server,
    resolved timestamptz not null default '-infinity',
    taken_until timestamptz not null default '-infinity',
    prepared bool not null default false,
    next_allowed timestamptz,
    reason text not null default '',
    failures int not null default 0
);
create index host_server on host (server);
-- All names below a domain, side by side.
create index host_domain on host (reverse(name) collate "C");

-- robots.txt belongs to scheme, host and port.
create table origin (
    origin text primary key,
    host text not null,
    status int not null,
    body text not null,
    fetched timestamptz not null,
    expires timestamptz not null,
    failures int not null default 0,
    etag text,
    modified text
);

-- What a host has to offer to a crawl: best rank of its ranked lanes, earliest times (epoch seconds) of its timed ones. `name` and
-- `stage` repeat what the host says (0: its server is unknown, 1: its robots.txt still is, 2: all is known), so that an index leads
-- straight to the next host of a kind.
create table crawl_host (
    crawl int not null references crawl on delete cascade,
    host int not null references host on delete cascade,
    name text not null collate "C",
    stage smallint not null,
    ready float8,
    since float8 not null default 0,
    place float8 generated always as (since + 3600 * ready) stored,
    retry float8,
    revisit float8,
    pages bigint not null default 0,
    bytes bigint not null default 0,
    primary key (host, crawl)
) with (fillfactor = 80, autovacuum_vacuum_scale_factor = 0.05);
create index crawl_host_place on crawl_host (crawl, stage, place, name) where place is not null;
create index crawl_host_retry on crawl_host (crawl, stage, retry, name) where retry is not null;
create index crawl_host_revisit on crawl_host (crawl, stage, revisit, name) where revisit is not null;

-- What was taken down, when, why, and how much: a URL, a host, or all hosts below a name (`*.example.org`). While it is `barred` it is not
-- fetched again. `ended` is null until all of it is gone from database and archive; `files` are those that took the place of others.
create table forgotten (
    id int generated always as identity primary key,
    what text not null,
    reason text not null,
    barred bool not null,
    asked timestamptz not null,
    ended timestamptz,
    undone timestamptz,
    urls bigint not null default 0,
    versions bigint not null default 0,
    records bigint not null default 0,
    files text[] not null default '{}'
);
create unique index forgotten_barred on forgotten (what) where barred;

create function is_forgotten(address text, host_id int) returns bool language sql stable as $$
    select exists (
        select from crawlproj.host h join crawlproj.forgotten f on f.what = any (array[address, h.name]
            || array(select '*' || substr(h.name, n) from generate_series(1, length(h.name)) n where substr(h.name, n, 1) = '.'))
        where h.id = host_id and f.barred)
$$;

create type url_state as enum ('new', 'waiting', 'retry', 'dead', 'moved', 'gone', 'retired', 'forbidden', 'ignored');

-- The rank of a URL in a ranked lane, lowest first. Breadth-first inside a depth in the order of finding: steps of 10 microseconds since
-- 2026, as a fraction that is exact for depths below 256 and eleven years. frontier.base.compute_rank is the same.
create function url_rank(ordering text, depth int, score float8, first_seen timestamptz) returns float8 language sql immutable as $$
    select case ordering
        when 'bfs' then depth + least(greatest(floor(extract(epoch from first_seen - '2026-01-01 00:00:00+00') * 100000), 0),
            35184372088831)::float8 / 35184372088832
        when 'dfs' then -depth
        else -score end
$$;

-- Every URL ever seen. Each end of a visit changes its place in the queue, so room left in the table's pages would help no update.
-- `id` is a 64-bit hash of crawl and canonical form, so that links need no look-up. `found` is the way in by which it has depth and
-- parent (0 seed, 1 link, 2 feed, 3 sitemap, 4 robots.txt, 5 push, 6 redirect, 7 request of a spider, 8 import; null: not stored then).
-- `source`: the last visit took it for a source, and `interval_s` is one of a source. `rate_a` and `rate_b` (in seconds) say how often it
-- changes, see revisit/rates.py; `own_a` and `own_b` belong to a policy of one's own; `importance`: what a visit is worth beside others.
-- `published`: when a feed or sitemap, or the URL itself, says that the page was published.
create table url (
    id bigint primary key,
    crawl int not null references crawl on delete cascade,
    host int not null references host,
    canonical text not null,
    state url_state not null,
    lane smallint,
    rank float8,
    depth int not null,
    score float8 not null,
    parent bigint,
    hops smallint not null default 0,
    visit int not null default 0,
    tries smallint not null default 0,
    changes int not null default 0,
    status smallint not null default 0,
    why text not null default '',
    first_seen timestamptz not null,
    last_visit timestamptz,
    last_change timestamptz,
    next_visit timestamptz,
    interval_s float8,
    etag text,
    modified text,
    body_digest bytea,
    block_digest bytea,
    moved_to text,
    expires timestamptz,
    request json,
    found smallint,
    source bool not null default false,
    rate_a real,
    rate_b real,
    own_a real,
    own_b real,
    importance real,
    last_read timestamptz,
    reads int not null default 0,
    published timestamptz,
    check ((lane is null) = (rank is null))
) with (autovacuum_vacuum_scale_factor = 0.05);
-- The queue: one index, read lane by lane. Only queued URLs are in it.
create index url_queue on url (crawl, host, lane, rank, id) where lane is not null;
-- Judged again when a robots.txt changes.
create index url_forbidden on url (host, id) where state = 'forbidden';
create index url_seed on url (crawl, first_seen, id) where depth = 0;

-- URLs per state, how many of them are queued, and how many of these are sources: what each statement changed, so that nobody counts
-- millions of rows, and no one waits for another's counter. The rows of a crawl are summed up into one per state now and then.
create table url_count (
    crawl int not null references crawl on delete cascade,
    state url_state not null,
    number bigint not null,
    sources bigint not null default 0,
    queued bigint not null default 0
);
create index url_count_crawl on url_count (crawl);

create function count_added() returns trigger language plpgsql as $$
begin
    insert into crawlproj.url_count
    select crawl, state, count(*), count(*) filter (where source and lane is not null), count(lane) from added group by crawl, state;
    return null;
end $$;
create function count_changed() returns trigger language plpgsql as $$
begin
    insert into crawlproj.url_count
    select crawl, state, sum(number), sum(source * number), sum(queued * number) from (
        select crawl, state, 1 as number, (source and lane is not null)::int as source, (lane is not null)::int as queued from after
        union all select crawl, state, -1, (source and lane is not null)::int, (lane is not null)::int from before) c
    group by crawl, state having sum(number) <> 0 or sum(source * number) <> 0 or sum(queued * number) <> 0;
    return null;
end $$;
create function count_deleted() returns trigger language plpgsql as $$
begin
    insert into crawlproj.url_count
    select d.crawl, d.state, -count(*), -count(*) filter (where d.source and d.lane is not null), -count(d.lane)
    from deleted d join crawlproj.crawl c on c.id = d.crawl
    group by d.crawl, d.state;
    return null;
end $$;
create trigger count_added after insert on url referencing new table as added for each statement execute function count_added();
create trigger count_changed after update on url referencing old table as before new table as after
    for each statement execute function count_changed();
create trigger count_deleted after delete on url referencing old table as deleted for each statement execute function count_deleted();

-- The latest reading of a page. `warc_...`: the record in the archive that has its body, and what a revisit record says of it.
-- `declared_language` is what the page says, `language` what its text is in ('und': cannot be told, '': not judged). `reader` and its
-- version made the text. `canonical_page`: the one that it names by rel=canonical, if that is another. `duplicate_of`: the page that had the
-- same content first; `duplicate_kind`: exact, text, near or paragraph; `similarity`: how much of it is the same. `known_share`: how much
-- of its long paragraphs stands on other pages. `noted`: the archive has a record that says so.
create table page (
    url bigint primary key references url on delete cascade,
    at timestamptz not null,
    title text not null,
    content_type text not null,
    charset text not null,
    declared_language text not null,
    length int not null,
    noindex bool not null,
    noarchive bool not null,
    elapsed_s real not null,
    warc_file text,
    warc_offset bigint,
    warc_length int,
    warc_record uuid,
    warc_digest text,
    warc_at timestamptz,
    kind text not null default '',
    reader text not null default '',
    reader_version smallint not null default 0,
    language text not null default '',
    words int not null default 0,
    canonical_page bigint,
    duplicate_of bigint,
    duplicate_kind text,
    similarity real,
    known_share real,
    noted bool not null default true,
    article text
) with (fillfactor = 85);
create index page_duplicate on page (duplicate_of) where duplicate_of is not null;
create index page_unnoted on page (url) where not noted;

-- A row for the first reading and for each one that differed, and where its body is in the archive. `change`: what kind of change it was
-- (content/changes.py), and how many letters came and went.
create table page_version (
    url bigint not null references url on delete cascade,
    at timestamptz not null,
    status smallint not null,
    body_digest bytea not null,
    block_digest bytea not null,
    length int not null,
    warc_file text,
    warc_offset bigint,
    warc_length int,
    warc_record uuid,
    warc_digest text,
    warc_at timestamptz,
    known_share real,
    change text,
    new_letters int,
    gone_letters int,
    primary key (url, at)
);

-- What the next reading of a page is compared with (content/page_state.py), small enough to stay in its row; and what its server said of
-- changes: Last-Modified, Expires or max-age, lastmod of a sitemap.
create table page_state (
    url bigint primary key references url on delete cascade,
    state bytea,
    modified_at timestamptz,
    fresh_until timestamptz,
    listed_at timestamptz
) with (fillfactor = 70);
alter table page_state alter state set storage external;

-- What is known of the texts of a host: what differs on its pages without meaning anything, and its answer to a path that nobody has.
create table host_text (
    crawl int not null references crawl on delete cascade,
    host int not null references host on delete cascade,
    noise bytea,
    probe bytea,
    primary key (host, crawl)
);
alter table host_text alter noise set storage external;
alter table host_text alter probe set storage external;

-- What came of what the servers of a host said of changes: how often a page had changed when a hint said so, and when it did not, and
-- how often it was the same.
create table host_hint (
    host int not null references host on delete cascade,
    hint text not null,
    changed_said bigint not null default 0,
    changed_unsaid bigint not null default 0,
    same_said bigint not null default 0,
    same_unsaid bigint not null default 0,
    primary key (host, hint)
);

-- The text of the latest reading, block by block (crawlproj/content/packed_text.py). It is compressed already.
create table page_text (
    url bigint primary key references url on delete cascade,
    blocks bytea not null
);
alter table page_text alter blocks set storage external;

-- Digests of pages that are nobody's copy, the scope mixed in: of the body, and of the text if there is any.
create table exact (
    page bigint primary key references url on delete cascade,
    body bigint not null,
    text bigint
);
create index exact_body on exact (body);
create index exact_text on exact (text) where text is not null;

-- Bands of the MinHash signatures of such pages, the scope mixed in: pages that share one are compared.
create table band (
    page bigint primary key references url on delete cascade,
    h1 bigint not null,
    h2 bigint not null,
    h3 bigint not null,
    h4 bigint not null,
    h5 bigint not null,
    h6 bigint not null,
    h7 bigint not null,
    h8 bigint not null
);
create index band_h1 on band (h1);
create index band_h2 on band (h2);
create index band_h3 on band (h3);
create index band_h4 on band (h4);
create index band_h5 on band (h5);
create index band_h6 on band (h6);
create index band_h7 on band (h7);
create index band_h8 on band (h8);

-- Long paragraphs, the scope mixed in: the first page of a host that had it, and on how many of its pages it stands (up to 5: it is
-- boilerplate then).
create table paragraph (
    hash bigint not null,
    host int not null,
    page bigint not null,
    number smallint not null,
    primary key (hash, host)
);

-- Pages with the same content, by the first of them; `kept` is the one that stands for all; `named`: one of them says so by rel=canonical.
create table cluster (
    original bigint primary key references url on delete cascade,
    kept bigint not null,
    named bool not null default false
);

-- Pages that are to be judged anew by what is stored: their original has another text now, or is gone.
create table unjudged (
    page bigint primary key references url on delete cascade
);

-- Pages that are articles and wait for the process that takes them, with their bodies (compressed); without one: the article is stored, and
-- its item has not passed the pipelines yet. `taken_by` is the worker that has it, until then.
create table article_queue (
    page bigint primary key references url on delete cascade,
    crawl int not null references crawl on delete cascade,
    at timestamptz not null,
    charset text not null,
    body bytea,
    taken_by text,
    taken_until timestamptz,
    tries smallint not null default 0
);
create index article_queue_crawl on article_queue (crawl, at);
alter table article_queue alter body set storage external;

-- Where new pages are found: feeds, sitemaps, front pages, and hubs, which are pages learned by what they bring. `site`: the registered domain
-- of the site that it belongs to, which may be another one than its own. `entries`: how many it had last; `new_links`: how many it has
-- brought; `last_new`: when it did last; `gap_s`: the usual time between two visits that brought something; `newest`: the latest date in it;
-- `silent_since`: it brings nothing for longer than usual; `problem`: what is odd about it; `missed`: about so many links it would have
-- brought since then, or if it is not silent, lacks that others of its site have brought.
create table source (
    url bigint primary key references url on delete cascade,
    crawl int not null references crawl on delete cascade,
    site text not null,
    kind text not null,
    title text not null default '',
    first_visit timestamptz not null,
    last_visit timestamptz not null,
    visits int not null default 0,
    entries int not null default 0,
    new_links bigint not null default 0,
    last_new timestamptz,
    gap_s float8,
    newest timestamptz,
    silent_since timestamptz,
    problem text not null default '',
    missed int not null default 0
);
create index source_crawl on source (crawl, site);

-- Which addresses may be one article, by the long number in them. `shape`: a hash of crawl, host and form of address; `fetched`: the ids of
-- those that are fetched; `held`: of those that wait in case one of these is no page; `is_free`: the number says nothing, so none waits.
create table article_key (
    shape bigint not null,
    number bigint not null,
    crawl int not null references crawl on delete cascade,
    fetched bigint[] not null,
    held bigint[] not null default '{}',
    is_free boolean not null default false,
    primary key (shape, number)
);
create index article_key_crawl on article_key (crawl);

-- Articles, by the page that each was taken from first. `fields` has what else an item has; the keys tell the same article at another
-- address of its site. `sent`: the last version whose item has passed the pipelines.
create table article (
    page bigint primary key references url on delete cascade,
    crawl int not null references crawl on delete cascade,
    site text not null,
    version int not null,
    at timestamptz not null,
    found_at timestamptz not null,
    changed_at timestamptz not null,
    title text,
    text text not null,
    date text,
    modified text,
    fields jsonb not null,
    title_key bigint,
    text_key bigint not null,
    sent int not null default 0
);
create index article_changed on article (crawl, changed_at, page);
create index article_title on article (title_key) where title_key is not null;
create index article_text on article (text_key);

-- Other pages with the same article, that are not copies as a whole (page.duplicate_of).
create table article_address (
    page bigint primary key references url on delete cascade,
    article bigint not null references article on delete cascade
);
create index article_address_article on article_address (article);

-- Addresses that were never fetched since they are a view of `page`, or its number under other words (frontier/article_addresses.py).
-- `id` is the one that such a URL has in `url` when it is fetched after all; then its own page counts.
create table held_address (
    id bigint primary key,
    page bigint not null,
    url text not null
);
create index held_address_page on held_address (page);

-- All addresses of an article, the canonical one first: one that a page with it names by rel=canonical, else one on the host where it was
-- found first, else the one that was last seen changed, else the shortest. Those whose page is gone come after the others, and those that
-- were not fetched come last. A page with an article of its own (DUPLICATE_KEEP) is none of them.
create function article_urls(article_page bigint) returns table (address text) language sql stable as $$
    with own as (
        select article_page as url union all select page from crawlproj.article_address where article = article_page
    ), first as (
        select coalesce(p.duplicate_of, p.url) as url from own join crawlproj.page p on p.url = own.url
    ), member as materialized (
        select url from (
            select url from own union select url from first
            union select p.url from crawlproj.page p join first f on p.duplicate_of = f.url) n
        where url = article_page or not exists (select from crawlproj.article a where a.page = n.url)
    ), claim as materialized (
        select p.url as page, p.canonical_page as names from member m join crawlproj.page p on p.url = m.url
        where p.canonical_page in (select url from member)
    ), fetched as (
        select u.canonical, row_number() over (order by
            u.state in ('gone', 'retired', 'moved', 'dead'),
            u.id in (select names from claim) or u.canonical = coalesce(a.fields ->> 'canonical', '') desc, u.id in (select page from claim),
            u.host <> o.host, case when u.changes > 0 then u.last_change end desc nulls last, length(u.canonical), u.id) as place
        from member m join crawlproj.url u on u.id = m.url join crawlproj.url o on o.id = article_page
            left join crawlproj.article a on a.page = article_page
        order by place limit 100
    ), held as (
        select h.url from member m join crawlproj.held_address h on h.page = m.url
        where not exists (select from crawlproj.page p where p.url = h.id) limit 100
    )
    select a.address from (select canonical as address, place from fetched union all select url, null from held) a order by a.place, a.address
$$;

-- Adds up two counts by name.
create function add_counts(one jsonb, other jsonb) returns jsonb language sql immutable as $$
    select case when other = '{}' then one when one = '{}' then other else (
        select jsonb_object_agg(key, number) from (
            select key, sum(value::bigint) as number from (select * from jsonb_each_text(one) union all select * from jsonb_each_text(other)) e
            group by key) n) end
$$;
create aggregate sum_counts(jsonb) (sfunc = add_counts, stype = jsonb, initcond = '{}');

-- What a crawl did in a minute, an hour or a day (`span_s`) that began then. `freshness`: the share of pages
-- whose copy is up to date, and `age_s`: how long the others have been out of date, in the mean of all pages; both estimated. `weight`: what
-- the visits to known pages were worth together, in thousandths, and `weight_changed`: those of them that found a change. `delays`: of the
-- articles that were found then, how many were fetched how soon after their publication, see articles/delays.py.
create table crawl_stat (
    crawl int not null references crawl on delete cascade,
    span_s int not null,
    at timestamptz not null,
    fetches bigint not null default 0,
    failed bigint not null default 0,
    new bigint not null default 0,
    changed bigint not null default 0,
    unchanged bigint not null default 0,
    copies bigint not null default 0,
    articles bigint not null default 0,
    article_versions bigint not null default 0,
    useful bigint not null default 0,
    bytes bigint not null default 0,
    weight bigint not null default 0,
    weight_changed bigint not null default 0,
    delays jsonb not null default '{}',
    freshness real,
    age_s real,
    primary key (crawl, span_s, at)
);

-- The links of the latest reading: targets in this crawl by id, others by URL; one letter per link says its kind, a big one that it is not to
-- be followed; one line is its text. Details are what few links have: JSON by attribute, then by link; see frontier/stored_links.py.
create table page_links (
    url bigint primary key references url on delete cascade,
    known bigint[] not null,
    known_kinds text not null,
    known_texts text not null,
    other text not null,
    other_kinds text not null,
    other_texts text not null,
    details text
) with (fillfactor = 85);

-- Without lz4 they are not packed: Postgres's own way would take half of all the time that the database needs for a page.
do $$
begin
    if exists (select from pg_settings where name = 'default_toast_compression' and 'lz4' = any (enumvals)) then
        alter table page_links alter known_texts set compression lz4;
        alter table page_links alter other set compression lz4;
        alter table page_links alter other_texts set compression lz4;
        alter table page_links alter details set compression lz4;
        alter table origin alter body set compression lz4;
    else
        alter table page_links alter known set storage external;
        alter table page_links alter known_texts set storage external;
        alter table page_links alter other set storage external;
        alter table page_links alter other_texts set storage external;
        alter table page_links alter details set storage external;
    end if;
end $$;

-- All that is known of a host in a crawl, for people: also feeds and sitemaps of its site that are elsewhere; `first_visit` as far as
-- versions are kept.
create view site as
select h.id as host, h.name, c.name as crawl, c.id as crawl_id,
    (select o.status from origin o where o.host = h.name order by o.fetched desc limit 1) as robots_status,
    (select max(o.fetched) from origin o where o.host = h.name) as robots_fetched,
    n.sitemaps, n.feeds,
    (select jsonb_object_agg(state, number) from (
        select u.state, count(*) as number from url u where u.host = h.id and u.crawl = c.id group by u.state) n) as pages,
    (select least(min(v.at), min(s.first_visit), min(u.last_visit)) from url u left join page_version v on v.url = u.id
        left join source s on s.url = u.id where u.host = h.id and u.crawl = c.id) as first_visit,
    (select max(u.last_visit) from url u where u.host = h.id and u.crawl = c.id) as last_visit
from crawl_host ch join host h on h.id = ch.host join crawl c on c.id = ch.crawl
    cross join lateral (
        select count(*) filter (where s.kind like '%sitemap%') as sitemaps, count(*) filter (where s.kind = 'feed') as feeds
        from source s join url u on u.id = s.url join host o on o.id = u.host
        where s.crawl = c.id and s.site in (
                select substr('.' || h.name, k + 1) from generate_series(1, length(h.name)) k where substr('.' || h.name, k, 1) = '.')
            and (o.id = h.id or right('.' || o.name, length(s.site) + 1) <> '.' || s.site)) n;
