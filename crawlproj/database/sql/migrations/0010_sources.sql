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
    problem text not null default '',
    missed int not null default 0
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
