-- Sources: where new pages are found, what each brings, and whether it has fallen silent; and when pages were published, as lists say.
set local search_path = crawlproj;

alter table url add published timestamptz;

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
    problem text not null default ''
);
create index source_crawl on source (crawl, site);

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

create view site as
select h.id as host, h.name, c.name as crawl, c.id as crawl_id,
    (select o.status from origin o where o.host = h.name order by o.fetched desc limit 1) as robots_status,
    (select max(o.fetched) from origin o where o.host = h.name) as robots_fetched,
    coalesce(n.sitemaps, 0) as sitemaps, coalesce(n.feeds, 0) as feeds,
    (select jsonb_object_agg(state, number) from (
        select u.state, count(*) as number from url u where u.host = h.id and u.crawl = c.id group by u.state) n) as pages,
    (select min(u.first_seen) from url u where u.host = h.id and u.crawl = c.id) as first_seen,
    (select max(u.last_visit) from url u where u.host = h.id and u.crawl = c.id) as last_visit
from crawl_host ch join host h on h.id = ch.host join crawl c on c.id = ch.crawl
    left join (
        select s.crawl, b.host, count(*) filter (where s.kind like '%sitemap%') as sitemaps, count(*) filter (where s.kind = 'feed') as feeds
        from source s join lateral (
            with recursive above as (
                select u.parent, u.found, u.host from url u where u.id = s.url
                union select p.parent, p.found, p.host from above a join url p on p.id = a.parent where a.found = 10)
            select host from above where found is distinct from 10 limit 1) b on true
        group by s.crawl, b.host) n on n.crawl = c.id and n.host = h.id;
