"""scrapy forget: what is taken down is gone, stays away, and nothing else suffers, whatever happens
meanwhile.
"""

from __future__ import annotations

import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from crawlproj.archive import Archive
from crawlproj.database.connection import Database
from tests.integration.test_archive_crawl import VERSIONS, answers, readable, sound
from tests.integration.test_robots import Site, crawl, pass_a_day, states
from tests.integration.test_robots import site as site
from tests.support.crawling import ROOT, Crawl, Result, run_command, start_crawl
from tests.support.webs import rows

pytestmark = pytest.mark.proof

LEFT = (
    "select (select count(*) from crawlproj.page p join crawlproj.url u on u.id = p.url where {0}),"
    " (select count(*) from crawlproj.page_version p join crawlproj.url u on u.id = p.url where "
    "{0}),"
    " (select count(*) from crawlproj.page_links p join crawlproj.url u on u.id = p.url where {0}),"
    " (select count(*) from crawlproj.page_state p join crawlproj.url u on u.id = p.url where {0})"
)


def scrapy(folder: Path, database_url: str, *words: str, code: int = 0) -> Result:
    result = run_command(list(words), folder, {"DATABASE_URL": database_url})
    assert result.code == code, result.stdout + result.stderr
    assert "Traceback" not in result.stderr
    return result


def ask(database_url: str, query: str) -> list[tuple[object, ...]]:
    database = Database(database_url)
    found = database.run_script(query)
    database.close()
    return found


def all_is_well(folder: Path, database_url: str) -> Archive:
    """Every file is sound, and every place in the database leads to its record."""
    archive = sound(folder / "warc")
    assert readable(database_url, archive) > 0
    assert readable(database_url, archive, VERSIONS) > 0
    return archive


@pytest.fixture
def crawled(site: Site, database_url: str, tmp_path: Path) -> Iterator[Site]:
    """Two visits of a small site: revisits of both kinds, and another version of one page."""
    site.links("/a", "/b", "/c")
    site.pages["/b"] = 200, {"ETag": '"b"'}, b"<p>page b</p>"
    assert crawl(site, database_url, tmp_path).code == 0
    site.pages["/a"] = 200, {}, b"<p>another page a</p>"
    pass_a_day(database_url)
    assert crawl(site, database_url, tmp_path).code == 0
    yield site


def test_a_forgotten_url_is_gone_and_does_not_come_back(
    crawled: Site, database_url: str, tmp_path: Path
) -> None:
    url = f"{crawled.base}/a"
    other = f"{crawled.base}/b"
    before = answers(Archive(tmp_path / "warc"))
    shown = scrapy(tmp_path, database_url, "forget", url, "-n", "--json").json
    assert (shown["urls"], shown["pages"], shown["versions"], len(shown["files"])) == (1, 1, 2, 2)
    assert answers(Archive(tmp_path / "warc")) == before, "a dry run changes nothing"
    done = scrapy(
        tmp_path, database_url, "forget", url, "--reason", "asked by its owner", "--json"
    ).json
    (rule,) = done["forgotten"]
    assert (rule["what"], rule["urls"], rule["versions"], rule["records"], rule["files"]) == (
        url,
        1,
        2,
        shown["records"],
        2,
    )
    assert rule["ended"] and rule["barred"]
    archive = all_is_well(tmp_path, database_url)
    assert answers(archive) == {name: number for name, number in before.items() if name != url}
    assert not [path for path in (tmp_path / "warc").glob("*.cdxj") if b")/a " in path.read_bytes()]
    assert ask(database_url, LEFT.format("u.why = 'forgotten'")) == [(0, 0, 0, 0)]
    pass_a_day(database_url)
    scrapy(tmp_path, database_url, "push", url)
    assert "was forgotten" in scrapy(tmp_path, database_url, "seeds", "add", url).stderr
    crawled.asked.clear()
    assert crawl(crawled, database_url, tmp_path).code == 0
    assert crawled.paths()["/a"] == 0 and crawled.paths()["/b"] == 1, "the home page links to both"
    assert states(crawled, database_url)["/a"] == ("forbidden", "forgotten")
    said = scrapy(tmp_path, database_url, "explain", url).stdout
    assert (
        "was forgotten at" in said and "asked by its owner" in said and "not fetched again" in said
    )
    assert "asked by its owner" in scrapy(tmp_path, database_url, "forget", "--list").stdout
    assert "forgotten" not in scrapy(tmp_path, database_url, "explain", other).stdout


def test_undo_lets_it_be_fetched_again_but_brings_nothing_back(
    crawled: Site, database_url: str, tmp_path: Path
) -> None:
    url = f"{crawled.base}/a"
    scrapy(tmp_path, database_url, "forget", url)
    assert "1 URL queued" in scrapy(tmp_path, database_url, "forget", "--undo", url).stdout
    assert (
        "was not forgotten"
        in scrapy(tmp_path, database_url, "forget", "--undo", url, code=1).stderr
    )
    assert Archive(tmp_path / "warc").get(url) is None
    crawled.asked.clear()
    assert crawl(crawled, database_url, tmp_path).code == 0
    assert crawled.paths()["/a"] == 1
    assert states(crawled, database_url)["/a"][0] == "waiting"
    assert len(all_is_well(tmp_path, database_url).versions(url)) == 1


def test_with_keep_crawling_only_the_past_goes(
    crawled: Site, database_url: str, tmp_path: Path
) -> None:
    url = f"{crawled.base}/b"
    scrapy(tmp_path, database_url, "forget", url, "--keep-crawling")
    assert Archive(tmp_path / "warc").get(url) is None
    assert states(crawled, database_url)["/b"][0] == "waiting"
    pass_a_day(database_url)
    crawled.asked.clear()
    assert crawl(crawled, database_url, tmp_path).code == 0
    (asked,) = [headers for path, headers in crawled.asked if path == "/b"]
    assert "if-none-match" not in asked, "what it was like is forgotten too"
    archive = all_is_well(tmp_path, database_url)
    assert [entry.mime for entry in archive.versions(url)] == ["text/html"]
    scrapy(tmp_path, database_url, "forget", f"{crawled.base}/c")
    assert len(archive.versions(url)) == 1, "what came later stays"


def test_a_host_goes_with_all_its_pages_and_other_hosts_stay(
    site: Site, database_url: str, tmp_path: Path
) -> None:
    site.links("/a")
    site.robots = {
        name: (200, {}, b"User-agent: *\nDisallow: /private\n")
        for name in ("one", "www.one", "two")
    }
    assert crawl(site, database_url, tmp_path).code == 0
    ask(
        database_url,
        "insert into crawlproj.host_text (crawl, host, probe) select c.id, h.id, 'P' from "
        "crawlproj.crawl c, crawlproj.host h on conflict do nothing returning 1",
    )
    result = scrapy(tmp_path, database_url, "forget", "ONE.test", "--reason", "law")
    assert "Other hosts stay, such as www.one.test" in result.stdout
    hosts = {
        url.split("/")[2].partition(":")[0] for url in answers(all_is_well(tmp_path, database_url))
    }
    assert hosts == {"www.one.test", "two.test"}
    assert ask(database_url, "select count(*) from crawlproj.origin where host = 'one.test'") == [
        (0,)
    ]
    texts = ask(
        database_url,
        "select h.name from crawlproj.host_text t join crawlproj.host h on h.id = t.host",
    )
    assert sorted(texts) == [("two.test",), ("www.one.test",)]
    assert {row.why for url, row in rows(database_url).items() if "//one.test" in url} == {
        "forgotten"
    }
    assert "was forgotten" in scrapy(tmp_path, database_url, "explain", "one.test").stdout
    scrapy(tmp_path, database_url, "forget", "*.test")
    site.asked.clear()
    unknown = site.url("three", "/never-seen")
    scrapy(tmp_path, database_url, "push", unknown)
    pass_a_day(database_url)
    crawl(site, database_url, tmp_path)
    assert not site.asked
    assert rows(database_url)[unknown].why == "forgotten", "a rule holds for what was not known"
    assert not answers(Archive(tmp_path / "warc"))


def test_what_makes_no_sense_is_refused(database_url: str, tmp_path: Path) -> None:
    for words in (
        ["example.org/page"],
        ["example.org:80"],
        ["http://"],
        ["*"],
        ["a*b"],
        [],
        ["a.test", "--undo", "--list"],
    ):
        assert "Traceback" not in scrapy(tmp_path, database_url, "forget", *words, code=2).stderr
    assert scrapy(tmp_path, database_url, "forget", "--list", "--json").json == {"forgotten": []}
    assert (
        scrapy(tmp_path, database_url, "forget", "never.test", "--json").json["files"]["rewritten"]
        == 0
    )


def test_a_crawl_that_runs_gives_up_what_it_has(
    site: Site, database_url: str, tmp_path: Path
) -> None:
    """Its file is closed, its tickets are refused, what is under way is not kept."""
    paths = [f"/{number}" for number in range(300)]
    site.links(*paths)
    settings = {
        "DATABASE_URL": database_url,
        "FRONTIER_FLUSH": 0.2,
        "CRAWL_CONTINUOUS": True,
        "POLITENESS_DELAY": 0.1,
        "POLITENESS_PAUSE_AFTER": 0,
        "DNS_HOSTS": {"*.test": "127.0.0.1"},
        "REVISIT_MIN": 1,
        "REVISIT_INTERVAL": 1,
        "REVISIT_MAX": 1,
    }
    seeds = f"{site.url('one')},{site.url('two')}"
    with start_crawl(["site", "-a", f"seeds={seeds}"], settings, tmp_path) as running:
        wait_for(running, lambda: len(site.asked) > 30)
        done = scrapy(tmp_path, database_url, "forget", "one.test", "--json").json
        assert done["forgotten"][0]["records"] > 0
        after = len(site.times["one"])
        here = len(site.times["two"])
        wait_for(running, lambda: len(site.times["two"]) > here + 20)
        assert len(site.times["one"]) == after
        assert list((tmp_path / "warc").glob("*.open")), "the crawl goes on"
        running.stop()
        assert running.wait().code == 130
    found = answers(all_is_well(tmp_path, database_url))
    assert found and not [url for url in found if "//one.test" in url]


def wait_for(running: Crawl, happened: Callable[[], bool]) -> None:
    """Until it is so; the crawl must go on."""
    while not happened():
        assert running.process.poll() is None
        time.sleep(0.05)


def test_two_at_once_wait_for_each_other(crawled: Site, database_url: str, tmp_path: Path) -> None:
    settings = {"DATABASE_URL": database_url}
    with (
        Crawl(["forget", f"{crawled.base}/a"], tmp_path, settings) as one,
        Crawl(["forget", f"{crawled.base}/b"], tmp_path, settings) as two,
    ):
        assert (one.wait().code, two.wait().code) == (0, 0)
    found = answers(all_is_well(tmp_path, database_url))
    assert set(found) == {f"{crawled.base}{path}" for path in ("/", "/c", "/robots.txt")}
    assert ask(database_url, "select count(*) from crawlproj.forgotten where ended is null") == [
        (0,)
    ]


def test_a_file_that_a_stranger_writes_is_not_left_behind_silently(
    crawled: Site, database_url: str, tmp_path: Path
) -> None:
    url = f"{crawled.base}/a"
    path = Archive(tmp_path / "warc").closed_files()[0]
    taken = path.with_name(path.name + ".open")
    hold = (
        f"import fcntl, sys; f = open({str(taken)!r}, 'r+b'); fcntl.flock(f, 2); print(1, "
        "flush=True); sys.stdin.read()"
    )
    path.rename(taken)
    child = subprocess.Popen(
        [sys.executable, "-c", hold], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    )
    assert child.stdin is not None and child.stdout is not None
    assert child.stdout.readline() == "1\n"
    assert path.name in scrapy(tmp_path, database_url, "forget", url, code=1).stderr
    assert ask(database_url, "select ended from crawlproj.forgotten") == [(None,)]
    child.communicate()
    scrapy(tmp_path, database_url, "forget", f"{crawled.base}/never")
    assert url not in answers(all_is_well(tmp_path, database_url)), "another run ends what was left"


CHILD = """
import os, signal, sys
from pathlib import Path
from scrapy.utils.project import get_project_settings
from crawlproj.archive import Archive, index_merge, recovery, removal
from crawlproj.config import read_config
from crawlproj.database.connection import Database, Transaction
from crawlproj.upkeep import takedown
from tests.integration.test_archive_crawl import answers

folder, dsn, base = sys.argv[1:]
settings = get_project_settings()
settings.setdict({"CRAWL_DIR": folder, "DATABASE_URL": dsn, "GUARD_ALLOW_PRIVATE": True}, priority="cmdline")
config, left = read_config(settings, "site"), 0

def tick():
    global left
    left -= 1
    if left == 0:
        os.kill(os.getpid(), signal.SIGKILL)

def ticking(work):
    def done(*args, **more):
        tick()
        found = work(*args, **more)
        tick()
        return found
    return done

Path.unlink, Path.replace = ticking(Path.unlink), ticking(Path.replace)
index_merge.write_file = removal.write_file = recovery.write_file = ticking(index_merge.write_file)
Transaction._send = ticking(Transaction._send)

def run(step):
    global left
    pid = os.fork()
    if pid:
        return os.waitpid(pid, 0)[1]
    left, db = step, Database(dsn)
    if step:
        takedown.store_rules(db, [f"{base}/{step}"], "a test", True)
    takedown.carry_out(db, config, print)
    os._exit(0)

wanted = set(answers(Archive(config.warc_dir)))
for step in range(1, 120):
    status = run(step)
    wanted.discard(f"{base}/{step}")
    missing = wanted - set(answers(Archive(config.warc_dir)))
    assert not missing, (step, missing)
    if status == 0:
        print(step)
        break
    assert os.WTERMSIG(status) == signal.SIGKILL, (step, status)
    assert step % 3 == 0 or run(0) == 0  # after some kills another one comes first
"""


@pytest.mark.kills
def test_a_kill_at_any_step_is_made_good_by_the_next_run(
    site: Site, database_url: str, tmp_path: Path
) -> None:
    """The removal of the first page is killed at its first step, that of the second page at the
    second, and so on, until one comes to its end.
    """
    paths = [f"/{number}" for number in range(120)]
    site.links(*paths)
    for path in paths[::2]:
        site.pages[path] = 200, {"ETag": f'"{path}"'}, f"<p>page {path}</p>".encode()
    assert crawl(site, database_url, tmp_path).code == 0
    pass_a_day(database_url)
    assert crawl(site, database_url, tmp_path).code == 0
    whole = answers(Archive(tmp_path / "warc"))
    command = [sys.executable, "-c", CHILD, str(tmp_path), database_url, site.base]
    ended = subprocess.run(command, cwd=ROOT, capture_output=True, text=True)
    assert ended.returncode == 0, ended.stderr
    kills = int(ended.stdout.split()[-1])
    assert 40 < kills < 119
    gone = {what for (what,) in ask(database_url, "select what from crawlproj.forgotten")}
    assert gone == {
        f"{site.base}/{number}" for number in range(kills - len(gone) + 1, kills + 1)
    }, "the first came not even to ask"
    assert len(gone) > kills - 10
    archive = all_is_well(tmp_path, database_url)
    assert answers(archive) == {url: number for url, number in whole.items() if url not in gone}
    assert ask(
        database_url,
        "select count(*), count(ended), sum(urls), sum(versions) from crawlproj.forgotten",
    ) == [(len(gone),) * 4]
    assert ask(database_url, LEFT.format("u.why = 'forgotten'")) == [(0, 0, 0, 0)]
    assert not list((tmp_path / "warc").glob("*.part"))
