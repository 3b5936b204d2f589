-- Scope and revisit intervals of the last start, so that the next one sees what has changed; hosts that were left out.
set local search_path = crawlproj;
alter table crawl add column rules jsonb;

create table left_out_host (
    crawl int not null references crawl on delete cascade,
    name text not null collate "C",
    url text not null,
    reason text not null,
    first_seen timestamptz not null,
    primary key (crawl, name)
);
