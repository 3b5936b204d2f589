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

create view site as
select h.id as host, h.name, c.name as crawl, c.id as crawl_id,
    (select o.status from origin o where o.host = h.name order by o.fetched desc limit 1) as robots_status,
    (select max(o.fetched) from origin o where o.host = h.name) as robots_fetched,
    (select count(*) from source s join url u on u.id = s.url where s.crawl = c.id and u.host = h.id and s.kind like '%sitemap%') as sitemaps,
    (select count(*) from source s join url u on u.id = s.url where s.crawl = c.id and u.host = h.id and s.kind = 'feed') as feeds,
    (select jsonb_object_agg(state, number) from (
        select u.state, count(*) as number from url u where u.host = h.id and u.crawl = c.id group by u.state) n) as pages,
    (select min(u.first_seen) from url u where u.host = h.id and u.crawl = c.id) as first_seen,
    (select max(u.last_visit) from url u where u.host = h.id and u.crawl = c.id) as last_visit
from crawl_host ch join host h on h.id = ch.host join crawl c on c.id = ch.crawl;
