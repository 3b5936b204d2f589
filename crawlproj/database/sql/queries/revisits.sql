-- What the revisits of a crawl share: prices, and how fresh the copies are. Asked by crawlproj/scheduling/revisit_budget.py, in the database thread.

-- name: move_prices
-- Multiplies the prices of a crawl by what a worker has moved them, and gives them; after turns that planned visits, and once a minute.
update crawl set page_price = least(greatest(coalesce(page_price, 1) * %(pages)s, 1e-9), 1e9),
    source_price = least(greatest(coalesce(source_price, 1) * %(sources)s, 1e-9), 1e9)
where id = %(crawl)s returning page_price, source_price;

-- name: sample_pages
-- Some pages of a crawl, by chance: how long ago each was read, and what is known of its changes; once a minute.
-- Ids are hashes, so rows that stand side by side are as good as drawn by lot. Those of other crawls among them are left out.
select extract(epoch from %(now)s::timestamptz - last_visit)::float8, rate_a, rate_b, source from (
    (select crawl, state, last_visit, rate_a, rate_b, source from url where id >= %(first)s order by id limit %(count)s)
    union all
    (select crawl, state, last_visit, rate_a, rate_b, source from url where id < %(first)s order by id limit %(count)s)) u
where crawl = %(crawl)s and state = 'waiting' and last_visit is not null limit %(count)s;

-- name: put_freshness
-- Stores how fresh a crawl's copies are by estimate, in the row of this minute; once a minute.
insert into crawl_stat as s (crawl, span_s, at, freshness, age_s)
values (%(crawl)s, 60, date_trunc('minute', now()), %(freshness)s, %(age_s)s)
on conflict (crawl, span_s, at) do update set freshness = excluded.freshness, age_s = excluded.age_s;
