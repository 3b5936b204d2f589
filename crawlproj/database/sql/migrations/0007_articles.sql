-- Articles: taken from pages by processes beside the crawl, a row each, with all addresses of the same article.
set local search_path = crawlproj;

alter table page add article text;

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
