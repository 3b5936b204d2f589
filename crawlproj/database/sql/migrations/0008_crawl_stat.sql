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
    weight bigint not null default 0,
    weight_changed bigint not null default 0,
    delays jsonb not null default '{}',
    primary key (crawl, span_s, at)
);

-- Adds up two counts by name.
create function add_counts(one jsonb, other jsonb) returns jsonb language sql immutable as $$
    select case when other = '{}' then one when one = '{}' then other else (
        select jsonb_object_agg(key, number) from (
            select key, sum(value::bigint) as number from (select * from jsonb_each_text(one) union all select * from jsonb_each_text(other)) e
            group by key) n) end
$$;
create aggregate sum_counts(jsonb) (sfunc = add_counts, stype = jsonb, initcond = '{}');
