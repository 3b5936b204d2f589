-- Where a URL came from, what is a source, and breadth-first in the order of finding.
set local search_path = crawlproj;

-- The rank of a URL in a ranked lane, lowest first. Breadth-first inside a depth in the order of finding: steps of 10 microseconds since
-- 2026, as a fraction that is exact for depths below 256 and eleven years. frontier.base.compute_rank is the same.
create function url_rank(ordering text, depth int, score float8, first_seen timestamptz) returns float8 language sql immutable as $$
    select case ordering
        when 'bfs' then depth + least(greatest(floor(extract(epoch from first_seen - '2026-01-01 00:00:00+00') * 100000), 0),
            35184372088831)::float8 / 35184372088832
        when 'dfs' then -depth
        else -score end
$$;

alter table url add column found smallint, add column source bool not null default false;

update url u set rank = url_rank(c.ordering, u.depth, u.score, u.first_seen)
from crawl c where c.id = u.crawl and c.ordering = 'bfs' and u.lane in (1, 3);
