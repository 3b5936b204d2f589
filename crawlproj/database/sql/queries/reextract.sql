-- What the frontier knows of the requests of a crawl; reads only.
-- Asked by crawlproj/reextract/known_requests.py.

-- name: known_depths
-- The depths of URLs of a crawl, requests of a spider's own aside; for scrapy reextract.
select id, depth from url where id = any (%(ids)s::bigint[]) and request is null;

-- name: made_requests
-- Requests of a spider's own that were made, some at a time; for scrapy reextract.
select id, request, depth from url
where id > %(after)s and crawl = %(crawl)s and request is not null and visit > 0 order by id limit %(count)s;
