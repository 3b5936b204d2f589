-- What people ask: scrapy status, explain, duplicates, plan, warc. None of these locks or writes anything.
-- Asked by crawlproj/reports and crawlproj/commands.

-- name: status_urls
-- Crawls and states: URLs, fetched, documents, due, next due; for scrapy status.
-- `fetched`: the last visit got an answer; `documents`: there is a reading of it.
select c.name, u.state, count(*), count(*) filter (where u.status > 0), count(*) filter (where u.block_digest is not null),
    count(*) filter (where u.lane in (0, 1, 3) or u.rank <= extract(epoch from %(now)s::timestamptz)),
    to_timestamp(min(u.rank) filter (where u.lane in (2, 4) and u.rank > extract(epoch from %(now)s::timestamptz)))
from crawl c join url u on u.crawl = c.id group by c.name, u.state;

-- name: status_hosts
-- Crawls: hosts, and servers that are leased now; for scrapy status and scrapy push.
select c.name, count(ch.host), count(distinct s.id) filter (where s.until > %(now)s)
from crawl c left join crawl_host ch on ch.crawl = c.id left join host h on h.id = ch.host left join server s on s.id = h.server
group by c.name;

-- name: status_versions
-- Crawls: versions of pages; for scrapy status.
select c.name, count(*) from page_version v join url u on u.id = v.url join crawl c on c.id = u.crawl group by c.name;

-- name: status_texts
-- Crawls, languages and kinds of copies (null: no copy): pages and their words; for scrapy status.
select c.name, t.language, t.duplicate_kind, t.pages, t.words from (
    select u.crawl, p.language, p.duplicate_kind, count(*) as pages, sum(p.words)::bigint as words
    from page p join url u on u.id = p.url where u.state <> 'gone' and u.block_digest is not null group by u.crawl, p.language, p.duplicate_kind) t
join crawl c on c.id = t.crawl;

-- name: status_first_hosts
-- The first hosts of a crawl in an order that is stored with them; for scrapy status --hosts.
select ch.host from crawl c join crawl_host ch on ch.crawl = c.id join host h on h.id = ch.host left join server s on s.id = h.server
where c.name = %(crawl)s
order by case %(sort)s when 'pages' then -ch.pages when 'bytes' then -ch.bytes when 'failures' then -h.failures
        when 'next_allowed' then extract(epoch from greatest(h.next_allowed, s.next_allowed)) end nulls last, h.name
limit %(count)s;

-- name: status_by_host
-- The hosts of a crawl, all or these, in any order, with states, what is due and what is stored of them.
-- The URLs are read once from end to end, as for scrapy status: there is no index by host. For scrapy status --hosts.
with counted as (
    select u.host, u.state, count(*) as number, count(*) filter (where u.status > 0) as fetched,
        count(*) filter (where u.block_digest is not null) as documents,
        count(*) filter (where u.lane in (0, 1, 3) or u.rank <= extract(epoch from %(now)s::timestamptz)) as due,
        min(u.rank) filter (where u.lane in (2, 4) and u.rank > extract(epoch from %(now)s::timestamptz)) as next_due,
        sum(p.elapsed_s) as elapsed_s, count(p.elapsed_s) as timed
    from crawl c join url u on u.crawl = c.id left join page p on p.url = u.id
    where c.name = %(crawl)s and (%(hosts)s::int[] is null or u.host = any (%(hosts)s::int[]))
    group by u.host, u.state
), summed as (
    select host, jsonb_object_agg(state, number) as states, sum(number) as known, sum(fetched)::bigint as fetched,
        sum(documents)::bigint as documents, sum(due)::bigint as due_now, min(next_due) as next_due,
        1000 * sum(elapsed_s) / nullif(sum(timed), 0) as response_ms
    from counted group by host
)
select h.name, coalesce(t.states, '{}'), coalesce(t.fetched, 0), coalesce(t.documents, 0), coalesce(t.due_now, 0), to_timestamp(t.next_due),
    t.response_ms::float8, ch.pages, ch.bytes, h.failures, greatest(h.next_allowed, s.next_allowed),
    case when s.next_allowed > h.next_allowed or h.next_allowed is null then coalesce(s.reason, '') else h.reason end,
    s.address, coalesce(s.until > %(now)s::timestamptz, false)
from crawl c join crawl_host ch on ch.crawl = c.id join host h on h.id = ch.host left join server s on s.id = h.server
    left join summed t on t.host = ch.host
where c.name = %(crawl)s and (%(hosts)s::int[] is null or ch.host = any (%(hosts)s::int[]))
order by case %(sort)s when 'pages' then -ch.pages when 'bytes' then -ch.bytes when 'failures' then -h.failures
        when 'next_allowed' then extract(epoch from greatest(h.next_allowed, s.next_allowed)) when 'next_due' then t.next_due
        when 'known' then -t.known when 'fetched' then -t.fetched when 'documents' then -t.documents when 'due_now' then -t.due_now
        when 'response_ms' then -t.response_ms else -coalesce((t.states ->> %(sort)s)::bigint, 0) end nulls last, h.name
limit %(count)s;

-- name: status_host_robots
-- The stored robots.txt files of hosts, for their Crawl-delay; for scrapy status --hosts.
select origin, host, status, body, fetched, expires, failures, etag, modified from origin where host = any (%(hosts)s);

-- name: crawls_with_host
-- Which crawls have a host; for scrapy explain, when no crawl is named.
select c.name from crawl c join crawl_host ch on ch.crawl = c.id join host h on h.id = ch.host where h.name = %(host)s order by c.name;

-- name: crawls_with_url
-- Which crawls have a URL (its id differs from crawl to crawl); for scrapy explain.
select c.name from crawl c join url u on u.crawl = c.id where u.id = any (%(ids)s::bigint[]) order by c.name;

-- name: explain_host
-- When a host and its server may be asked, why not now, and who leases it; for scrapy explain.
select h.next_allowed, h.reason, h.failures, s.next_allowed, s.reason, s.address, case when s.until > %(now)s then s.worker end, case when s.until > %(now)s then s.until end
from host h left join server s on s.id = h.server where h.name = %(host)s;

-- name: explain_host_urls
-- States of a host's URLs in a crawl: how many, due now, next due; for scrapy explain.
select u.state, count(*), count(*) filter (where u.lane in (0, 1, 3) or u.rank <= extract(epoch from %(now)s::timestamptz)),
    to_timestamp(min(u.rank) filter (where u.lane in (2, 4) and u.rank > extract(epoch from %(now)s::timestamptz)))
from url u join host h on h.id = u.host join crawl c on c.id = u.crawl
where h.name = %(host)s and c.name = %(crawl)s group by u.state;

-- name: explain_host_robots
-- The origins of a host whose robots.txt is stored; for scrapy explain and scrapy plan.
select origin from origin where host = %(host)s order by origin;

-- name: explain_rules
-- The scope and revisit intervals of a crawl's last start; for scrapy explain.
select rules from crawl where name = %(name)s;

-- name: explain_delay
-- The pause between two requests to a host that a crawl kept last; for scrapy explain, plan and status.
select delay_s from crawl where name = %(name)s;

-- name: explain_left_out
-- The first link to a host that a crawl has left out, why, and since when; for scrapy explain.
select url, reason, first_seen from left_out_host where crawl = %(crawl)s and name = %(name)s;

-- name: explain_leaving
-- Which crawls have left out a host; for scrapy explain, when no crawl is named.
select c.name from crawl c join left_out_host l on l.crawl = c.id where l.name = %(host)s order by c.name;

-- name: explain_page
-- What is known of a page's text and of its copies; for scrapy explain and scrapy duplicates.
select p.noindex, p.reader, p.language, p.words, p.duplicate_of, o.canonical, p.duplicate_kind, p.similarity, p.known_share, t.blocks,
    (select count(*) from page c where c.duplicate_of = p.url)
from page p left join url o on o.id = p.duplicate_of left join page_text t on t.url = p.url where p.url = %(id)s;

-- name: explain_links
-- The links of a page, as they are stored; for scrapy explain.
select known, known_kinds, known_texts, other, other_kinds, other_texts, details from page_links where url = %(id)s;

-- name: report_kinds
-- Kinds of copies of a crawl: how many of each; for scrapy duplicates.
select p.duplicate_kind, count(*) from page p join url u on u.id = p.url
where p.duplicate_of is not null and u.crawl = %(crawl)s group by p.duplicate_kind;

-- name: report_clusters
-- The pages that most others of a crawl are copies of, and how many of a kind; for scrapy duplicates.
select p.duplicate_of, count(*) from page p join url u on u.id = p.url
where p.duplicate_of is not null and u.crawl = %(crawl)s and (%(kind)s::text is null or p.duplicate_kind = %(kind)s)
group by p.duplicate_of order by count(*) desc, p.duplicate_of limit %(count)s;

-- name: report_copies
-- Copies cluster by cluster, from one on: of a page, crawl and kind, or of all; for scrapy duplicates.
-- Planned each time: an argument that is null makes another query of it.
select p.url, u.canonical, h.name, c.name, p.at, p.duplicate_kind, p.similarity, p.duplicate_of, o.canonical,
    coalesce(k.kept, p.duplicate_of) as kept, s.canonical
from page p join url u on u.id = p.url join host h on h.id = u.host join crawl c on c.id = u.crawl
    left join url o on o.id = p.duplicate_of left join cluster k on k.original = p.duplicate_of
    left join url s on s.id = coalesce(k.kept, p.duplicate_of)
where p.duplicate_of is not null and (%(original)s::bigint is null or p.duplicate_of = %(original)s)
    and (%(crawl)s::int is null or u.crawl = %(crawl)s) and (%(kind)s::text is null or p.duplicate_kind = %(kind)s)
    and (p.duplicate_of, p.at, p.url) > (%(after_original)s::bigint, %(after_at)s::timestamptz, %(after_url)s::bigint)
order by p.duplicate_of, p.at, p.url limit %(count)s;

-- name: report_similar
-- Pages whose paragraphs stand elsewhere, most of it first, from one on; for scrapy duplicates --similar.
-- All pages of the crawl are looked at: it is a question that people ask now and then.
select f.url, f.canonical, h.name, f.at, f.known_share, o.canonical, f.duplicate_kind from (
    select p.url, u.canonical, u.host, p.at, p.known_share, p.duplicate_of, p.duplicate_kind from page p join url u on u.id = p.url
    where p.known_share >= %(least)s::real and u.crawl = %(crawl)s
        and (p.known_share, p.url) < (%(after_share)s::real, %(after_url)s::bigint)
    order by p.known_share desc, p.url desc limit %(count)s) f
join host h on h.id = f.host left join url o on o.id = f.duplicate_of
order by f.known_share desc, f.url desc;

-- name: report_paragraphs
-- The first pages of some hosts that have paragraphs, but for common notices; as report_similar.
select q.hash, f.page, u.canonical from unnest(%(hashes)s::bigint[]) as q (hash)
    cross join lateral (select page from paragraph where hash = q.hash and number < 5 limit 8) f
    join url u on u.id = f.page
where f.page <> %(page)s;

-- name: report_scheme
-- The number of a crawl, and how the marks of its pages are made; as report_similar.
select id, duplicate_scheme from crawl where name = %(name)s;

-- name: plan_hosts
-- The hosts that come next in a crawl, and when they may be asked; for scrapy plan.
select h.id, h.name, greatest(%(now)s::timestamptz, h.next_allowed) as allowed
from crawl_host c join host h on h.id = c.host
where c.crawl = %(crawl)s and (c.ready is not null or c.retry is not null or c.revisit is not null)
order by greatest(h.next_allowed, %(now)s::timestamptz, case when c.ready is null then to_timestamp(least(c.retry, c.revisit)) end),
    c.ready nulls last, h.name
limit %(count)s;

-- name: plan_urls
-- The next URLs of each of these hosts, per lane; for scrapy plan.
select u.id, u.canonical, w.name, u.visit, u.lane, u.state, u.depth, u.score, u.block_digest is not null,
    case when u.lane in (2, 4) then to_timestamp(u.rank) end
from unnest(%(host)s::int[], %(name)s::text[]) as w (host, name)
    cross join unnest(array[0, 1, 2, 3, 4]) as l (lane)
    cross join lateral (
        select * from url where crawl = %(crawl)s and host = w.host and lane = l.lane order by rank, id limit %(count)s) u
order by w.host, u.lane, u.rank, u.id;

-- name: archived_places
-- Where pages and their versions are in the archive; for scrapy warc, while their files have no index.
select warc_file, warc_offset, warc_length from page where url = any (%(ids)s::bigint[]) and warc_file is not null
union select warc_file, warc_offset, warc_length from page_version where url = any (%(ids)s::bigint[]) and warc_file is not null;
