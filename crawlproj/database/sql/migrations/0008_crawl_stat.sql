-- What crawls did, minute by minute.
set local search_path = crawlproj;

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
    primary key (crawl, span_s, at)
);
