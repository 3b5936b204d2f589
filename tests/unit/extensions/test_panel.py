"""What is shown of a crawl: figures from stats, the panel, the summary."""

from __future__ import annotations

import io
import logging
from datetime import UTC, datetime, timedelta
from pathlib import Path
from types import SimpleNamespace

import pytest

from crawlproj.articles.delays import Delays
from crawlproj.cli.next_commands import appending_words, option_words, repeated_command
from crawlproj.cli.screen import Screen
from crawlproj.cli.summary import CrawlSummary, format_summary
from crawlproj.extensions.panel import ALIKE, TerminalLog, panel_lines, status_line
from crawlproj.frontier.base import Outlook, State
from crawlproj.scheduling.snapshot import (
    HostSnapshot,
    Tally,
    count_outcomes,
    why_nothing_held,
)

NOW = datetime(2026, 3, 1, 12, 0, tzinfo=UTC)
STATS = {
    "pages/first": 5,
    "pages/changed": 2,
    "pages/same_bytes": 1,
    "pages/not_modified": 3,
    "end/moved": 4,
    "gone/status_404": 6,
    "forbidden/robots": 7,
    "failed/timeout": 2,
    "failed/status_503": 1,
    "frontier/added": 30,
    "response_received_count": 28,
    "robots/unreachable": 1,
    "finish_reason": "finished",
    "failed": 99,
}


def text_of(
    reason: str = "finished", stats: dict[str, object] | None = None, **more: object
) -> str:
    done = count_outcomes(STATS if stats is None else stats)
    return "\n".join(format_summary(CrawlSummary("site", reason, 10.0, done, NOW, **more)))  # type: ignore[arg-type]


def test_stats_become_figures_that_add_up() -> None:
    done = count_outcomes(STATS)
    assert (done.new, done.changed, done.unchanged, done.pages_read) == (5, 2, 4, 11)
    assert (done.moved, done.gone, done.forbidden, done.failed) == (4, 6, 7, 3)
    assert done.reasons["failed"] == {"timeout": 2, "status 503": 1}
    assert done.urls_ended == 11 + 4 + 6 + 7 + 3


def test_panel_and_summary_say_how_much_of_what_was_fetched_was_useful() -> None:
    stats = {**STATS, "articles/new": 6, "articles/versions": 1, "articles/failed/no_text": 1}
    done = count_outcomes(stats)
    assert done.useful_share == 7 / 28
    assert "7 articles (25% useful)" in status_line(
        done, HostSnapshot(), 1.0, elapsed_s=10.0, stopping=False
    )
    assert "6 new, 1 new version, 1 could not be read; 25% of all responses brought one" in text_of(
        stats=stats
    )
    assert "rticle" not in text_of()


def test_panel_and_summary_say_how_fresh_the_copies_are_and_what_revisits_were_worth() -> None:
    stats = {**STATS, "pages/noise": 2, "revisit/weight": 8000, "revisit/weight_changed": 4000}
    at = HostSnapshot(freshness=0.931, age_s=7200, articles_of_day=1234)
    lines = panel_lines("t", count_outcomes(stats), at, 1.0, 10.0, False, 120)
    assert (
        "  copies  93.1 % up to date by estimate, mean age 2 h; 6 of 8 revisits wasted, change "
        "ratio 50 %; 1,234 articles in 24 h"
    ) in lines
    first_run = panel_lines("t", count_outcomes({}), HostSnapshot(), 1.0, 10.0, False, 120)
    assert not any("copies" in line for line in first_run)
    text = " ".join(text_of(stats=stats, freshness=0.931, age_s=7200).split())
    assert (
        "93.1 % of the copies are up to date by estimate, their mean age is 2 h (age: how" in text
    )
    assert "Revisits 8 2 found a change, 6 wasted (75 %), 2 of them met only clocks" in text
    assert "change ratio by weight 50 %" in text


def test_the_summary_names_the_slowest_sites_and_what_sources_miss() -> None:
    stats = {**STATS, "articles/new": 9, "sources/silent": 2, "sources/missed": 70}
    sites = [(f"{n}.test", Delays(9, n * 60.0, n * 60.0)) for n in range(9, 0, -1)]
    more = {
        "delays": Delays(81, 300, 540),
        "slow_sites": sites,
        "articles_of_day": 1500,
        "source_kinds": {"feed": 3, "sitemap index": 2},
        "examples": {"sources/silent": "http://a.test/feed"},
    }
    text = " ".join(text_of(stats=stats, **more).split())
    assert "the slowest sites: 9.test 9 min, 8.test 8 min, 7.test 7 min Revisits" in text
    assert "1,500 new in the last 24 hours" in text
    assert "Sources 5 where new pages are found: 3 feeds, 2 sitemap indexes" in text
    assert "Silent 2 sources bring nothing any more, such as http://a.test/feed" in text
    assert "about 70 links missed by estimate" in text


def test_the_panel_fits_the_terminal_and_says_why_it_waits() -> None:
    at = HostSnapshot(
        3, 0, 20, {"retry-after": 3}, "waiting for 3 hosts until 12:03:20: retry-after"
    )
    lines = panel_lines("crawlproj  site", count_outcomes(STATS), at, 1.5, 75, False, 60)
    assert lines[0] == "crawlproj  site  1:15"
    assert max(map(len, lines)) <= 60
    assert any("waiting for 3 hosts until 12:03:20: retry-after" in text for text in lines)
    assert any(
        "stopping" in text
        for text in panel_lines("t", count_outcomes(STATS), at, 1.5, 75, True, 80)
    )


def test_one_line_says_it_all_for_a_pipe() -> None:
    text = status_line(count_outcomes(STATS), HostSnapshot(1, 1, 1), 2.0, 3700, False)
    assert text.startswith(
        "1:01:40  11 pages, 2.0/s: 5 new, 2 changed, 4 unchanged; 4 moved, 6 gone, 7 forbidden, 3 "
        "failed"
    )
    assert text.endswith("; 1 URL of 1 host in hand")


def test_the_summary_names_reasons_with_an_example_each() -> None:
    text = text_of(
        examples={"failed/timeout": "http://a.test/slow", "failed/status_503": "http://a.test/busy"}
    )
    assert "Crawl site ended after 10 s: nothing more was due." in text
    assert "5 new, 2 changed, 4 unchanged, 1.1 a second" in text
    assert "timeout 2 x, such as http://a.test/slow" in text
    assert "status 503: http://a.test/busy" in text


def test_the_summary_says_what_limits_have_left_out() -> None:
    text = text_of(stats={"pages/first": 3, "pages/cut": 2, "watchdog/set_aside": 1})
    assert "Limited         2  read only in part: see the log" in text
    assert "                1  too slow to read, set aside: see the log" in text


def test_copies_are_told_by_kind_in_the_summary_and_in_all_while_it_runs() -> None:
    stats = STATS | {"duplicates/exact": 30, "duplicates/near": 7, "duplicates/items": 99}
    assert "Copies         37  of other pages: 30 exact, 7 near\n" in text_of(stats=stats)
    assert "Copies" not in text_of()
    line = status_line(count_outcomes(stats), HostSnapshot(1, 1, 1), 2.0, 3700, False)
    assert "4 unchanged, 37 copies;" in line


def test_articles_are_told_in_the_summary_and_while_it_runs() -> None:
    stats = STATS | {"articles/new": 3, "articles/versions": 1, "articles/same": 2}
    stats |= {"downloader/response_count": 16}
    assert "  Articles        4  3 new, 1 new version, 2 known by another address; " in text_of(
        stats=stats
    )
    assert "Articles" not in text_of()
    line = status_line(count_outcomes(stats), HostSnapshot(1, 1, 1), 2.0, 3700, False)
    assert "4 unchanged, 4 articles (14% useful);" in line
    only_same = STATS | {"articles/same": 2}
    line = status_line(count_outcomes(only_same), HostSnapshot(1, 1, 1), 2.0, 3700, False)
    assert "article" not in line, "not yet: 0 articles"


def test_a_visit_within_a_second_is_due_now() -> None:
    counts = {"known": 11, **{state.value: 0 for state in State}, "waiting": 11}
    outlook = Outlook(next_visit=NOW + timedelta(seconds=0.09))
    assert "visited again, some are due now" in text_of(counts=counts, outlook=outlook)


def test_the_summary_says_what_waits_until_when() -> None:
    counts = {"known": 12, **{state.value: 0 for state in State}, "waiting": 11, "retry": 1}
    outlook = Outlook(soonest=NOW + timedelta(seconds=50), next_visit=NOW + timedelta(days=5))
    text = text_of(counts=counts, outlook=outlook)
    assert "12 URLs known in all" in text
    assert "11 pages were read; they are visited again, the first at" in text
    assert "1 failed and will be tried again, the first at" in text
    assert "(in 50 s)" in text
    late = text_of(counts=counts, outlook=Outlook(next_visit=NOW - timedelta(days=1)))
    assert "some are due now" in late


def test_the_summary_speaks_of_one_as_of_one() -> None:
    text = text_of(counts={"known": 7, **{state.value: 1 for state in State}})
    assert "1 page was read; it is visited again" in text
    assert "1 waits to be fetched" in text
    assert "1 has moved, 1 is gone, 1 is refused (by server or robots.txt)" in text


def test_the_summary_tells_a_server_that_refuses_from_our_own_rules() -> None:
    text = text_of(stats={"forbidden/status_403": 2, "forbidden/robots": 1})
    assert "status 403 (the server refuses) 2 x" in text
    assert "may not be fetched" not in text


@pytest.mark.parametrize("width", [40, 60, 79, 100, 200])
def test_the_summary_fits_its_terminal_but_for_what_is_copied(width: int) -> None:
    long_url = "http://a.test/" + "x" * 3000
    commands = {"what is known of each crawl": "scrapy status -s CRAWL_DIR=/data/" + "c" * 100}
    done = count_outcomes(STATS | {"links/too_long": 3})
    summary = CrawlSummary(
        "site",
        "archive_lost",
        10.0,
        done,
        NOW,
        counts={"known": 7, **{state.value: 1 for state in State}},
        examples={"failed/timeout": long_url, "forbidden/robots": long_url},
        locations={"Log": "/data/crawl/log"},
        commands=commands,
    )
    lines = format_summary(summary, width)
    (command,) = commands.values()
    assert [line.strip() for line in lines if command in line] in ([command], [lines[-1].strip()])
    assert max(len(line) for line in lines if command not in line) <= width
    words = " ".join(" ".join(lines).split())
    assert "what was not stored is fetched again by the next run." in words
    assert "3 links longer than 2,000 characters, recorded but not followed: see the log" in words


def test_a_wait_for_a_killed_worker_is_said_as_what_it_is() -> None:
    lease = timedelta(minutes=2)
    soon = NOW + timedelta(seconds=40)
    rests = Outlook(ready=1, soonest=soon)
    killed = why_nothing_held(rests, NOW, orphans_until=NOW + timedelta(seconds=60), lease=lease)
    assert "a worker was killed" in killed
    later = why_nothing_held(rests, NOW, orphans_until=NOW + timedelta(seconds=10), lease=lease)
    assert "a host rests" in why_nothing_held(rests, NOW, orphans_until=None, lease=lease) == later
    others = why_nothing_held(Outlook(leased_elsewhere=2), NOW, orphans_until=None, lease=lease)
    assert others == (
        "waiting for 2 servers that other workers have (the lease of one that was killed ends "
        "within 2 min)"
    )


def test_commands_to_try_have_what_make_was_given_and_no_password(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    given = {
        "ROBOT_CONTACT": "mailto:me@example.org",
        "CRAWL_DIR": "/a b",
        "DATABASE_URL": "postgresql://me:secret@here/x",
    }
    for name, value in given.items():
        monkeypatch.setenv(name, value)
    monkeypatch.setenv("ROBOT_NAME", "exported")
    monkeypatch.setattr("sys.orig_argv", ["python", "-m", "scrapy", "crawl", "site"])
    settings = {**given, "ROBOT_NAME": "exported"}
    config = SimpleNamespace(crawl_dir=Path("/a b"), database_url=given["DATABASE_URL"])
    monkeypatch.delenv("MAKEFLAGS", raising=False)
    assert repeated_command(settings).endswith(" crawl site")
    assert option_words(config, settings) == "", "the next command has the environment too"  # type: ignore[arg-type]
    monkeypatch.setenv(
        "MAKEFLAGS",
        r" -n -- ROBOT_CONTACT=mailto:me@example.org CRAWL_DIR=/a\ b DATABASE_URL=x SEEDS=y",
    )
    again = (
        " crawl site -s 'CRAWL_DIR=/a b' -s DATABASE_URL=... -s ROBOT_CONTACT=mailto:me@example.org"
    )
    assert repeated_command(settings).endswith(again)
    assert option_words(config, settings) == " -s CRAWL_DIR='/a b' -s DATABASE_URL=..."  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("given", "suggested"),
    [
        ("-O a.jsonl -s X=-O", "-o a.jsonl -s X=-O"),
        ("-Oa.csv", "-o a.csv"),
        ("--overwrite-output=a.jsonl:jsonlines", "-o a.jsonl:jsonlines"),
        ("--overwrite a.jsonl", "-o a.jsonl"),
        ("-O a.json", "-o a-2.json"),
        ("-O a-2.xml", "-o a-3.xml"),
        ("--output a.jsonl -a seeds=x", "--output a.jsonl -a seeds=x"),
    ],
)
def test_the_command_to_repeat_adds_to_files_of_items(given: str, suggested: str) -> None:
    assert appending_words(["crawl", "site", *given.split()]) == [
        "crawl",
        "site",
        *suggested.split(),
    ]


def test_a_command_too_long_to_be_shown_is_not_repeated_with_overwriting(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.delenv("MAKEFLAGS", raising=False)
    monkeypatch.setattr("sys.orig_argv", ["scrapy", "crawl", "site", "-O", "x" * 200])
    assert repeated_command({}) == "the same command again, with -o in place of -O"


def test_a_run_with_nothing_to_do_says_so() -> None:
    assert "Nothing was due" in text_of(stats={})


@pytest.mark.parametrize(
    "reason",
    ["shutdown", "database_lost", "scheduler_error", "closespider_itemcount", "something new"],
)
def test_every_ending_is_put_into_words(reason: str) -> None:
    text = text_of(reason)
    assert reason not in text or reason == "something new"


def test_what_stays_is_written_above_what_is_drawn() -> None:
    stream = io.StringIO()
    screen = Screen(stream, live=True)
    screen.draw_lines(["title", "one"])
    screen.print_line("stays")
    screen.clear()
    erased = "\x1b[2F\x1b[2K\n\x1b[2K\n\x1b[2F"
    assert f"{erased}stays\n" in stream.getvalue()
    assert stream.getvalue().endswith(erased)
    assert "\x1b[J" not in stream.getvalue(), "tmux puts what it clears into its history"


def test_a_stream_that_is_gone_does_not_stop_a_crawl() -> None:
    stream = io.StringIO()
    screen = Screen(stream)
    stream.close()
    screen.print_line("nobody reads this")
    assert not screen.live


def test_warnings_that_repeat_are_shown_a_few_times_only() -> None:
    stream = io.StringIO()
    handler = TerminalLog(Screen(stream, live=False))
    for number in range(20):
        handler.handle(
            logging.LogRecord(
                "x", logging.WARNING, "", 0, "trouble %d\nsecond line", (number,), None
            )
        )
    handler.handle(logging.LogRecord("x", logging.ERROR, "", 0, "another", (), None))
    lines = stream.getvalue().splitlines()
    assert len(lines) == ALIKE + 1
    assert lines[0].endswith("warning: trouble 0")
    assert "more of these" in lines[ALIKE - 1]
    assert lines[-1].endswith("error: another")


def test_an_empty_tally_has_read_nothing() -> None:
    assert Tally().pages_read == Tally().urls_ended == 0
