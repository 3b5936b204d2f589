-- Requests since the last general pause are counted for the whole server; workers say their rules of politeness, crawls their delay.
set local search_path = crawlproj;

alter table server add asked jsonb not null default '{}', add busy_at timestamptz;
update server s set asked = c.asked, busy_at = now()
from (select server, jsonb_object_agg(name, asked) as asked from host where asked > 0 and server is not null group by server) c
where s.id = c.server;
alter table host drop asked;
alter table worker add rules jsonb not null default '{}';
alter table crawl add delay_s float8;
