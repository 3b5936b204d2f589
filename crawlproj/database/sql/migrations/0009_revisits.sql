-- When pages change: what is learned of each, what a change is compared with, and what servers say of changes.
set local search_path = crawlproj;

alter table url add rate_a real, add rate_b real, add own_a real, add own_b real, add importance real,
    add last_read timestamptz, add reads int not null default 0;
alter table crawl add page_price float8, add source_price float8;
alter table page_version add change text, add new_letters int, add gone_letters int;
alter table crawl_stat add freshness real, add age_s real;

create table page_state (
    url bigint primary key references url on delete cascade,
    state bytea,
    modified_at timestamptz,
    fresh_until timestamptz,
    listed_at timestamptz
) with (fillfactor = 70);
alter table page_state alter state set storage external;

create table host_text (
    crawl int not null references crawl on delete cascade,
    host int not null references host on delete cascade,
    noise bytea,
    probe bytea,
    primary key (host, crawl)
);
alter table host_text alter noise set storage external;
alter table host_text alter probe set storage external;

create table host_hint (
    host int not null references host on delete cascade,
    hint text not null,
    changed_said bigint not null default 0,
    changed_unsaid bigint not null default 0,
    same_said bigint not null default 0,
    same_unsaid bigint not null default 0,
    primary key (host, hint)
);

alter table url_count add sources bigint not null default 0, add queued bigint not null default 0;
create or replace function count_added() returns trigger language plpgsql as $$
begin
    insert into crawlproj.url_count
    select crawl, state, count(*), count(*) filter (where source and lane is not null), count(lane) from added group by crawl, state;
    return null;
end $$;
create or replace function count_changed() returns trigger language plpgsql as $$
begin
    insert into crawlproj.url_count
    select crawl, state, sum(number), sum(source * number), sum(queued * number) from (
        select crawl, state, 1 as number, (source and lane is not null)::int as source, (lane is not null)::int as queued from after
        union all select crawl, state, -1, (source and lane is not null)::int, (lane is not null)::int from before) c
    group by crawl, state having sum(number) <> 0 or sum(source * number) <> 0 or sum(queued * number) <> 0;
    return null;
end $$;
create or replace function count_deleted() returns trigger language plpgsql as $$
begin
    insert into crawlproj.url_count
    select d.crawl, d.state, -count(*), -count(*) filter (where d.source and d.lane is not null), -count(d.lane)
    from deleted d join crawlproj.crawl c on c.id = d.crawl
    group by d.crawl, d.state;
    return null;
end $$;
insert into url_count select crawl, state, 0, count(*) filter (where source), count(*) from url where lane is not null group by crawl, state;
