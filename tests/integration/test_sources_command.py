"""Sources that dry up are noticed, said and shown; and how soon articles are fetched."""

from __future__ import annotations

import logging
from collections.abc import Iterator
from datetime import timedelta
from pathlib import Path
from xml.etree import ElementTree

import pytest

from crawlproj.articles.delays import read_articles, read_delays, read_site_delays
from crawlproj.database.connection import Database
from crawlproj.scheduling import source_watch
from crawlproj.scheduling.source_watch import LastLook, SourceWatch
from tests.support.crawling import Result, run_command
from tests.support.sources import Sources

HOUR = 3600
DAY = 86_400
FEED = "https://a.test/feed"
FRONT = "https://a.test/"
STOPPED = "https://b.test/feed?a=1&b=2"
FAKED = "https://c.test/feed"
INDEX = "https://d.test/sitemap.xml"
FRESH = {"first": 10 * DAY, "last": 600, "last_new": 900, "gap_s": HOUR, "new_links": 260}


@pytest.fixture
def sources(database: Database) -> Iterator[Sources]:
    world = Sources(database)
    world.add(FEED, **FRESH, newest=1200, title="A <Feed>")
    world.add(FRONT, "front page", **{**FRESH, "new_links": 500})
    world.add(STOPPED, first=10 * DAY, last=600, last_new=DAY, gap_s=HOUR, new_links=236)
    world.add(FAKED, first=10 * DAY, last=600, last_new=10 * DAY, newest=600)
    index = world.add(INDEX, "sitemap index", first=DAY, last=600, last_new=DAY, visits=3)
    dead = [world.add_url(f"https://d.test/sitemap-{n}.xml") for n in range(10)]
    literal = ",".join(map(str, dead))
    world.database.run_script(f"""
        update crawlproj.url set state = 'gone', visit = 1, lane = null, rank = null
        where id in ({literal});
        insert into crawlproj.page_links (url, known, known_kinds, known_texts, other, other_kinds,
            other_texts) values ({index}, '{{{literal}}}', '{"s" * 10}', '', '', '', '')""")
    yield world


def ask(database_url: str, folder: Path, *words: str, **settings: object) -> Result:
    return run_command(["sources", *words], folder, {"DATABASE_URL": database_url, **settings})


def watch(world: Sources, k: float = 6.0) -> SourceWatch:
    return SourceWatch(world.frontier, k)


def test_watch_notes_what_is_silent_or_odd_and_says_it_once(
    sources: Sources, caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(source_watch, "PART", 2)  # site by site
    mine = watch(sources)
    other = watch(sources)
    caplog.set_level(logging.INFO)
    assert mine.look_at_all() == LastLook(1, 1, 0, 24, STOPPED)
    found = sources.stored()
    assert found[FEED] == found[FRONT] == (False, "")
    assert found[STOPPED][0] and "nothing new for 23 h" in found[STOPPED][1]
    assert "about 24 links missed" in found[STOPPED][1]
    assert found[FAKED] == (False, "its dates are those of the visit, and it lists nothing new")
    assert found[INDEX] == (False, "all 10 of its sitemaps that were asked are dead")
    assert len([line for line in caplog.messages if STOPPED in line]) == 1
    assert len([line for line in caplog.messages if FAKED in line]) == 1
    # Neither this worker nor another one says it again, also after the next visit.
    sources.database.run_script(
        "update crawlproj.source set problem = '' where silent_since is null"
    )
    before = len(caplog.messages)
    assert mine.look_at_all() == LastLook(0, 1, 0, 24, STOPPED)
    assert len(caplog.messages) == before
    assert other.look_at_all() == LastLook(0, 1, 0, 24, STOPPED)
    assert sources.stored() == found
    # It goes on.
    sources.database.run_script(f"""
        update crawlproj.source set last_new = now(), last_visit = now() where url in (
            select id from crawlproj.url where canonical = '{STOPPED}')""")
    assert mine.look_at_all() == LastLook()
    assert sources.stored()[STOPPED] == (False, "")
    assert f"Brings something again: the feed {STOPPED}" in caplog.messages


def test_watch_looks_when_it_is_time_and_never_if_it_is_off(sources: Sources) -> None:
    now = [0.0]
    off = SourceWatch(sources.frontier, 0, clock=lambda: now[0])
    on = SourceWatch(sources.frontier, 6.0, clock=lambda: now[0])
    assert on.take_turn() == 0
    now[0] = 1e6
    assert off.take_turn() == 0
    assert off.look_at_all() == LastLook()
    assert not any(silent for silent, _ in sources.stored().values())
    assert on.take_turn() == 1
    assert on.take_turn() == 0


def test_hours_of_a_source_are_learned_from_its_versions(sources: Sources) -> None:
    """It brings something every twenty minutes of the day, and sleeps at night."""
    world = sources
    url = "https://night.test/feed"
    id_ = world.add(url, first=27 * DAY, last=0, last_new=15 * HOUR, gap_s=20 * 60)
    world.database.run_script(f"""
        insert into crawlproj.page_version (url, at, status, body_digest, block_digest, length)
        select {id_}, at, 200, '', '', 1 from generate_series(now() - interval '27 days',
            now() - interval '15 hours', interval '20 minutes') as at
        where extract(hour from at - (now() - interval '28 days')) < 9""")
    watch(world).look_at_all()
    assert not world.stored()[url][0]
    world.database.run_script("delete from crawlproj.page_version")
    watch(world).look_at_all()
    assert world.stored()[url][0]


def test_command_shows_problems_first_and_what_each_source_brings(
    sources: Sources, database_url: str, tmp_path: Path
) -> None:
    watch(sources).look_at_all()
    told = ask(database_url, tmp_path, "--json").json
    assert (told["crawl"], told["total"], told["silent"]) == ("site", 5, 1)
    rows = {row["url"]: row for row in told["sources"]}
    assert [row["url"] for row in told["sources"]] == [STOPPED, FAKED, INDEX, FRONT, FEED]
    assert rows[STOPPED]["silent_since"] and rows[STOPPED]["missed"] == 24
    assert rows[FEED]["links_per_day"] == pytest.approx(24, rel=0.01)
    assert rows[FEED]["next_visit"] and rows[FEED]["interval_s"] == 900
    assert rows[FEED]["problem"] == "" and rows[FEED]["missed"] == 0

    text = ask(database_url, tmp_path, "--limit", "2").stdout.splitlines()
    assert text[0].startswith("kind ") and text[1].endswith(STOPPED)
    assert text[2].startswith("    SILENT: nothing new for 23 h")
    assert text[3].endswith(FAKED) and text[4].strip() == rows[FAKED]["problem"]
    assert text[5] == "and 3 more (--limit N)"
    assert text[-1] == "5 sources of crawl site: 1 silent, 2 with another problem"

    own = ask(database_url, tmp_path, "a.test", "--json").json
    assert {row["url"] for row in own["sources"]} == {FRONT, FEED}
    status = run_command(["status", "--json"], tmp_path, {"DATABASE_URL": database_url})
    figures = status.json["crawls"]["site"]
    assert (figures["sources"], figures["silent_sources"]) == (5, 1)
    assert figures["delay_p50_s"] is None
    status = run_command(["status"], tmp_path, {"DATABASE_URL": database_url})
    assert "1 of 5 sources silent: about 24 links missed (scrapy sources)" in status.stdout


def test_sources_that_disagree_are_counted_with_what_they_lack(
    sources: Sources, database_url: str, tmp_path: Path
) -> None:
    """The feed answers, but lists nothing of what the front page has brought for nine days. That the
    front page of another site lists nothing is no news: it never has.
    """
    world = sources
    broken = "https://e.test/feed"
    world.add(broken, first=10 * DAY, last=600, last_new=9 * DAY)
    world.add("https://e.test/", "front page", **{**FRESH, "new_links": 20 + 10 * 24})
    world.add("https://f.test/", "front page", first=10 * DAY, last=600)
    world.add("https://f.test/feed", **FRESH)
    assert watch(world).look_at_all() == LastLook(1, 1, 1, 24 + 216, STOPPED, broken)
    assert "about 216 links more" in world.stored()[broken][1]
    settings = {"DATABASE_URL": database_url}
    figures = run_command(["status", "--json"], tmp_path, settings).json["crawls"]["site"]
    told = figures["silent_sources"], figures["disagreeing_sources"], figures["missed_links"]
    assert told == (1, 1, 240)
    assert (
        "1 of 9 sources silent, 1 source lists nothing of what others of the site bring: "
        "about 240 links missed (scrapy sources)"
    ) in run_command(["status"], tmp_path, settings).stdout
    rows = ask(database_url, tmp_path, "e.test", "--json").json["sources"]
    assert {row["url"]: row["missed"] for row in rows} == {broken: 216, "https://e.test/": 0}
    # It lists them again.
    world.database.run_script(f"""
        update crawlproj.source set last_new = now(), last_visit = now() where url in (
            select id from crawlproj.url where canonical = '{broken}')""")
    assert watch(world).look_at_all() == LastLook(0, 1, 0, 24, STOPPED)


def test_opml_has_all_feeds_and_is_well_formed(
    sources: Sources, database_url: str, tmp_path: Path
) -> None:
    result = ask(database_url, tmp_path, "--opml")
    outlines = ElementTree.fromstring(result.stdout.encode()).findall(".//outline")
    assert {line.get("xmlUrl") for line in outlines} == {FEED, STOPPED, FAKED}
    by_url = {line.get("xmlUrl"): line for line in outlines}
    assert by_url[FEED].get("text") == "A <Feed>"
    assert by_url[STOPPED].get("type") == "rss"


def test_nonsense_is_refused_and_nothing_has_words(database_url: str, tmp_path: Path) -> None:
    nothing = ask(database_url, tmp_path)
    assert nothing.code == 2 and "there is no crawl 'site' yet" in nothing.stderr
    database = Database(database_url)
    Sources(database)
    assert "no sources yet" in ask(database_url, tmp_path).stdout
    assert ask(database_url, tmp_path, "--json").json["sources"] == []
    assert ask(database_url, tmp_path, "x.test").code == 1
    for words in (["--limit", "0"], ["http://a.test/"], ["--opml", "--json"], ["a", "b"]):
        assert ask(database_url, tmp_path, *words).code == 2
    assert ask(database_url, tmp_path, SOURCE_SILENCE="1").code == 2
    database.close()


def test_delays_count_articles_that_were_published_since_their_site_is_known(
    sources: Sources, database_url: str, tmp_path: Path
) -> None:
    world = sources
    site = "https://www.a.test/news/"

    def date(seconds: float) -> str:
        return world.ago(seconds).isoformat()

    world.add_article(f"{site}1", HOUR, date(HOUR + 40))
    world.add_article(f"{site}2", HOUR, date(HOUR + 300), published=HOUR + 100)
    world.add_article(f"{site}3", HOUR, published=HOUR + 60)
    world.add_article(f"{site}future", HOUR, date(HOUR - 60))
    world.add_article(f"{site}day", HOUR, "2026-11-01")
    world.add_article(f"{site}backlog", 9 * DAY, date(11 * DAY))
    world.add_article(f"{site}old", HOUR, date(11 * DAY))
    delays = read_delays(world.database, world.frontier.crawl_id, world.ago(30 * DAY))
    assert delays is not None
    assert (delays.number, round(delays.p50_s), round(delays.p95_s)) == (3, 60, 100)
    later = read_delays(world.database, world.frontier.crawl_id, world.now - timedelta(minutes=5))
    assert later is None

    told = ask(database_url, tmp_path, "--json").json["sites"]["a.test"]
    assert (told["articles"], told["timed"]) == (6, 3)
    assert (round(told["delay_p50_s"]), round(told["delay_p95_s"])) == (60, 100)
    text = ask(database_url, tmp_path).stdout
    assert "how soon after publication" in text
    assert text.splitlines()[-1].split() == [
        "a.test",
        "6",
        "6.0",
        "1",
        "min",
        "1",
        "min",
        "40",
        "s",
    ]
    status = run_command(["status", "--json"], tmp_path, {"DATABASE_URL": database_url})
    assert round(status.json["crawls"]["site"]["delay_p50_s"]) == 60


def test_articles_are_all_counted_and_delays_of_some_drawn_by_lot(
    sources: Sources, monkeypatch: pytest.MonkeyPatch
) -> None:
    world = sources
    for number in range(60):
        host = "www.a.test" if number % 3 else "b.test"
        world.add_article(f"https://{host}/{number}", HOUR, world.ago(HOUR + 40).isoformat())
    monkeypatch.setattr("crawlproj.articles.delays.MOST", 20)
    since = world.ago(2 * HOUR)
    found = read_articles(world.database, world.frontier.crawl_id, since)
    assert {site: articles.number for site, articles in found.items()} == {
        "a.test": 40,
        "b.test": 20,
    }
    timed = sum(len(articles.delays_s) for articles in found.values())
    assert 0 < timed < 50
    delays, by_site = read_site_delays(world.database, world.frontier.crawl_id, since)
    assert delays is not None and (delays.number, round(delays.p50_s)) == (timed, 40)
    assert {site for site, _ in by_site} <= {"a.test", "b.test"}


def test_view_of_sites_has_what_belongs_to_each_host(sources: Sources) -> None:
    """A feed that another host serves belongs to the site that names it; that of a sister host
    does not belong to this one.
    """
    world = sources
    world.add_url("https://www.a.test/news/1")
    elsewhere = world.add("https://feeds.test/a.xml", first=8 * DAY, last=3 * HOUR)
    read = world.add_url("https://feeds.test/about")
    world.database.run_script(f"""
        update crawlproj.source set site = 'a.test' where url = {elsewhere};
        update crawlproj.url set last_visit = '{world.ago(HOUR)}' where id = {read};
        insert into crawlproj.page_version (url, at, status, body_digest, block_digest, length)
        values ({read}, '{world.ago(9 * DAY)}', 200, '', '', 1);
        insert into crawlproj.origin (origin, host, status, body, fetched, expires)
        values ('https://a.test', 'a.test', 404, '', now(), now())""")
    rows = world.database.run_script("""
        select name, crawl, robots_status, sitemaps, feeds, pages, first_visit, last_visit
        from crawlproj.site""")
    sites = {name: row for name, *row in rows}
    # FEED and the one elsewhere; the latter only, since FEED is on a host of its own site.
    assert sites["a.test"][:5] == ["site", 404, 0, 2, {"waiting": 2}]
    assert sites["www.a.test"][:5] == ["site", None, 0, 1, {"new": 1}]
    assert sites["d.test"][2:5] == [1, 0, {"waiting": 1, "gone": 10}]
    assert sites["feeds.test"][3:] == [
        0,
        {"waiting": 1, "new": 1},
        world.ago(9 * DAY),
        world.ago(HOUR),
    ]
    assert sites["www.a.test"][5:] == [None, None]
