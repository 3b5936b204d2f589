"""A page that the database refuses costs nothing but itself: not the ends of others, not the crawl,
and not the next start.
"""

from __future__ import annotations

from pathlib import Path

from crawlproj.database.connection import Database
from crawlproj.demo import DemoServer, FrozenClock
from tests.support.crawling import run_command
from tests.support.webs import asked, crawl_demo, demo_settings, rows

REFUSE = """
create function crawlproj.refuse() returns trigger language plpgsql as $$
begin
    if (select canonical like '%/about.html' from crawlproj.url where id = new.url) then
        raise 'a page about itself';
    end if;
    return new;
end $$;
create trigger refuse before insert on crawlproj.page for each row execute function crawlproj.refuse();
"""


def test_a_page_that_the_database_refuses_is_set_aside(database_url: str, tmp_path: Path) -> None:
    database = Database(database_url)
    database.run_script(REFUSE)
    database.close()
    with DemoServer("tiny", clock=FrozenClock(1_790_000_000.0)) as demo:
        first = crawl_demo(demo, database_url, tmp_path, CRAWL_PATIENCE=0)
        assert first.code == 0, first.stderr + first.log
        found = rows(database_url)
        culprits = {url for url in found if url.endswith("/about.html")}
        read = {url for url, row in found.items() if row.state == "waiting" and row.status == 200}
        assert culprits and culprits < read and len(read) > 10
        assert {url for url, row in found.items() if "set aside" in row.why} == culprits
        assert {row.visits for url, row in found.items() if url in read} == {1}
        assert first.stats["frontier/set_aside"] == len(culprits)
        assert first.log.count("Set aside, the database refuses it: the end of") == len(culprits)
        settings = demo_settings(demo, database_url)
        culprit = min(culprits)
        said = run_command(["explain", culprit], tmp_path, settings)
        assert "(set aside: Postgres refused put_pages: a page about itself)" in said.stdout
        before = len(demo.log.records())
        second = crawl_demo(demo, database_url, tmp_path, CRAWL_PATIENCE=0)
        assert second.code == 0 and "frontier/set_aside" not in second.stats
        assert not culprits & asked(demo, before).keys()
