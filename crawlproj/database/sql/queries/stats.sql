-- What crawls did over time: a row a minute, an hour after two days, a day after sixty.
-- Written by crawlproj/scheduling/crawl_stats.py in the database thread, read by crawlproj/reports/history.py.

-- name: add_crawl_stat
-- Adds what a crawl did since the last time to the row of this minute; every ten seconds.
insert into crawl_stat as s (crawl, span_s, at, fetches, failed, new, changed, unchanged, copies, articles, article_versions, useful, bytes, weight,
    weight_changed)
values (%(crawl)s, 60, date_trunc('minute', now()), %(fetches)s, %(failed)s, %(new)s, %(changed)s, %(unchanged)s, %(copies)s, %(articles)s,
    %(article_versions)s, %(useful)s, %(bytes)s, %(weight)s, %(weight_changed)s)
on conflict (crawl, span_s, at) do update set fetches = s.fetches + excluded.fetches, failed = s.failed + excluded.failed,
    new = s.new + excluded.new, changed = s.changed + excluded.changed, unchanged = s.unchanged + excluded.unchanged,
    copies = s.copies + excluded.copies, articles = s.articles + excluded.articles,
    article_versions = s.article_versions + excluded.article_versions, useful = s.useful + excluded.useful, bytes = s.bytes + excluded.bytes,
    weight = s.weight + excluded.weight, weight_changed = s.weight_changed + excluded.weight_changed;

-- name: roll_crawl_stats
-- Adds up old rows of a crawl into rows of a longer span; when a worker starts, and once an hour.
with old as (
    delete from crawl_stat where crawl = %(crawl)s and span_s = %(from_s)s and at < now() - make_interval(secs => %(age_s)s) returning *
)
insert into crawl_stat as s (crawl, span_s, at, fetches, failed, new, changed, unchanged, copies, articles, article_versions, useful, bytes,
    weight, weight_changed, delays, freshness, age_s)
select crawl, %(to_s)s, date_trunc(%(unit)s, at), sum(fetches), sum(failed), sum(new), sum(changed), sum(unchanged), sum(copies),
    sum(articles), sum(article_versions), sum(useful), sum(bytes), sum(weight), sum(weight_changed), sum_counts(delays), avg(freshness), avg(age_s)
from old group by crawl, date_trunc(%(unit)s, at)
on conflict (crawl, span_s, at) do update set fetches = s.fetches + excluded.fetches, failed = s.failed + excluded.failed,
    new = s.new + excluded.new, changed = s.changed + excluded.changed, unchanged = s.unchanged + excluded.unchanged,
    copies = s.copies + excluded.copies, articles = s.articles + excluded.articles,
    article_versions = s.article_versions + excluded.article_versions, useful = s.useful + excluded.useful, bytes = s.bytes + excluded.bytes,
    weight = s.weight + excluded.weight, weight_changed = s.weight_changed + excluded.weight_changed,
    delays = add_counts(s.delays, excluded.delays),
    freshness = coalesce(excluded.freshness, s.freshness), age_s = coalesce(excluded.age_s, s.age_s);

-- name: put_delays
-- Stores how soon the articles that a crawl found in some minutes were fetched; once a minute.
-- In the rows of these minutes.
insert into crawl_stat (crawl, span_s, at, delays)
select %(crawl)s, 60, n.at, n.delays from unnest(%(at)s::timestamptz[], %(delays)s::jsonb[]) as n (at, delays)
on conflict (crawl, span_s, at) do update set delays = excluded.delays;

-- name: crawl_history
-- What a crawl did, in spans of a unit (minute, hour, day), the newest first; for scrapy status --history.
select date_trunc(%(unit)s, s.at) as at, sum(s.fetches)::bigint as fetches, sum(s.failed)::bigint as failed, sum(s.new)::bigint as new,
    sum(s.changed)::bigint as changed, sum(s.unchanged)::bigint as unchanged, sum(s.copies)::bigint as copies,
    sum(s.articles)::bigint as articles, sum(s.article_versions)::bigint as article_versions, sum(s.useful)::bigint as useful,
    sum(s.bytes)::bigint as bytes, sum(s.weight)::bigint as weight, sum(s.weight_changed)::bigint as weight_changed,
    sum_counts(s.delays) as delays, avg(s.freshness)::float8 as freshness, avg(s.age_s)::float8 as age_s
from crawl_stat s join crawl c on c.id = s.crawl
where c.name = %(name)s
group by 1 order by 1 desc limit %(limit)s;

-- name: status_articles
-- Articles of each crawl, those in the queue, useful fetches of a day; for scrapy status.
select c.name, (select count(*) from article a where a.crawl = c.id) as articles,
    (select count(*) from article a where a.crawl = c.id and a.changed_at > now() - interval '1 day'
        and a.found_at > now() - interval '1 day') as day,
    (select count(*) from article_queue q where q.crawl = c.id) as waiting,
    coalesce(s.fetches, 0) as fetches, coalesce(s.useful, 0) as useful
from crawl c left join lateral (
    select sum(fetches)::bigint as fetches, sum(useful)::bigint as useful from crawl_stat s
    where s.crawl = c.id and s.at > now() - interval '1 day') s on true;

-- name: articles_of_day
-- Articles that a crawl has found in the last 24 hours, by its history; once a minute, and when a worker ends.
select coalesce(sum(articles), 0)::bigint from crawl_stat where crawl = %(crawl)s and span_s = 60 and at > now() - interval '1 day';

-- name: crawl_history_start
-- When a crawl began, as far as its history tells.
select min(s.at) from crawl_stat s join crawl c on c.id = s.crawl where c.name = %(name)s;
