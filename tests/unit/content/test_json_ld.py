"""JSON-LD as pages have it: what can be understood of it is, and nothing of it is an error."""

from __future__ import annotations

import json
import time

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from crawlproj.content.json_ld import (
    MAX_NODES,
    choose_article,
    listed,
    plain_lines,
    plain_text,
    plain_texts,
    read_json_ld,
    type_names,
)

GOOD = '{"@context": "https://schema.org", "@type": "NewsArticle", "headline": "The bridge"}'
BROKEN = {
    "a byte order mark": "\ufeff" + GOOD,
    "a semicolon behind it": GOOD + ";",
    "an HTML comment around it": f"<!--\n{GOOD}\n-->",
    "CDATA": f"<![CDATA[{GOOD}]]>",
    "CDATA in a comment": f"/*<![CDATA[*/{GOOD}/*]]>*/",
    "CDATA behind slashes": f"//<![CDATA[\n{GOOD}\n//]]>",
    "a comment in it": GOOD.replace("{", "{ /* the data */ ", 1),
    "a comment on a line": GOOD.replace("{", "{ // the data\n", 1),
    "a comma too many": GOOD.replace("}", ",}"),
    "a comma in a list": '[{"@type": ["NewsArticle",], "headline": "The bridge"},]',
    "a line break in a text": GOOD.replace("}", ', "description": "one\ntwo\tthree"}'),
    "a control character": GOOD.replace("}", ', "description": "one\x01\x00two"}'),
    "a wrong escape": GOOD.replace("}", ', "description": "it\\\'s"}'),
    "entities for quotes": GOOD.replace('"', "&quot;"),
    "two values": GOOD + "\n" + '{"@type": "Organization", "name": "The Weekly"}',
    "rubbish behind it": GOOD + "</p>",
    "a quote not escaped": GOOD.replace("}", ', "description": "the "old" bridge"}'),
    "cut in the middle": GOOD.replace("}", ', "description": "and then'),
    "a template left in it": GOOD.replace("}", ', "image": {{ image }}}'),
}


@pytest.mark.parametrize("kind", BROKEN)
def test_broken_json_ld_still_says_the_headline(kind: str) -> None:
    article = choose_article(read_json_ld([BROKEN[kind]]), ())
    assert article.get("headline") == "The bridge"


def test_addresses_in_texts_are_no_comments() -> None:
    script = '{"@type": "NewsArticle", "url": "https://a.example/b", "x": "/* c */",}'
    (node,) = read_json_ld([script])
    assert (node["url"], node["x"]) == ("https://a.example/b", "/* c */")


def test_articles_are_found_in_graphs_and_lists() -> None:
    article = {"@type": "NewsArticle", "headline": "The bridge"}
    for value in (
        {"@graph": [{"@type": "WebSite", "name": "W"}, article]},
        [[article]],
        {"@type": "WebPage", "mainEntity": article},
        {"@type": "WebPage", "mainEntityOfPage": [{"x": article}]},
    ):
        assert choose_article(read_json_ld([json.dumps(value)]), ()) == article


def test_an_article_that_only_somebody_mentions_is_not_the_pages() -> None:
    other = {"@type": "NewsArticle", "headline": "Another"}
    for name in ("mentions", "citation", "isPartOf", "itemListElement", "comment", "author"):
        page = {"@type": "WebPage", "headline": "This", name: [other]}
        assert choose_article(read_json_ld([json.dumps(page)]), ())["headline"] == "This"


def test_of_several_articles_the_one_with_the_pages_address_is_its_own() -> None:
    nodes = [
        {"@type": "NewsArticle", "headline": str(number), "url": f"https://a.example/{number}"}
        for number in range(3)
    ]
    assert choose_article(nodes, ["http://www.a.example/2/?utm_source=x#top"])["headline"] == "2"
    assert choose_article(nodes, ["https://b.example/"])["headline"] == "0"
    assert choose_article([], ["https://b.example/"]) == {}
    by_page = {"@type": "Article", "mainEntityOfPage": {"@id": "https://a.example/x"}}
    assert choose_article([*nodes, by_page], ["https://a.example/x"]) is by_page


def test_types_are_told_with_or_without_their_address() -> None:
    names = ["http://schema.org/NewsArticle", "schema:Article", "REPORT", 5, None, {}]
    assert type_names({"@type": names}) == {"newsarticle", "article", "report"}


def test_values_of_wrong_types_give_no_text() -> None:
    for value in (None, 5, True, [], {}, {"name": 5}, {"@value": []}):
        assert plain_text(value) == ""
        assert plain_lines(value) == ""
        assert plain_texts([value, [value]]) == []
    assert listed(None) == [] and listed(0) == [0] and listed([1, [2, 3]]) == [1, 2, 3]
    assert plain_text({"@value": "A &amp; <b>B</b>\x00\n C"}) == "A & B C"
    assert plain_texts(["a", "b", "a", {"name": "c"}]) == ["a", "b", "c"]


def test_paragraphs_of_a_body_stay_apart() -> None:
    assert plain_lines("<p>One</p><p>Two<br/>three</p>").split() == ["One", "Two", "three"]
    assert "One\n" in plain_lines("<p>One</p><p>Two</p>")
    assert plain_lines("a\nb") == "a\nb"


@pytest.mark.parametrize(
    "script",
    [
        "[" * 200_000,
        '{"a":' * 100_000,
        '{"@type": "NewsArticle", "headline": "' + "\\" * 500_000,
        '"' * 500_000,
        "<!--" * 200_000,
        "/*" * 300_000,
        "&quot;" * 100_000,
        '{"@graph": [' + '{"@type": "Thing"},' * 50_000 + "{}]}",
        '"headline"' * 60_000,
        "<" * 500_000,
    ],
    ids=lambda script: script[:12],
)
def test_a_hostile_script_takes_little_time(script: str) -> None:
    started = time.process_time()
    nodes = read_json_ld([script])
    for name in ("headline", "x"):
        plain_text(nodes[0].get(name) if nodes else script)
    plain_lines(script)
    assert len(nodes) <= MAX_NODES
    assert time.process_time() - started < 2


JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False) | st.text(max_size=10),
    lambda inner: (
        st.lists(inner, max_size=4)
        | st.dictionaries(
            st.sampled_from(("@type", "@graph", "@id", "url", "headline", "name", "@value"))
            | st.text(max_size=3),
            inner,
            max_size=5,
        )
    ),
    max_leaves=20,
)


@given(JSON)
def test_any_json_can_be_read(value: object) -> None:
    nodes = read_json_ld([json.dumps(value)])
    article = choose_article(nodes, ["https://a.example/"])
    for part in (*article.values(), value):
        plain_text(part)
        plain_texts(part)
        plain_lines(part)


@given(st.text('{}[]",:\\/*<!->&quot; \n@typeheadline', max_size=80))
@example('{"@type": "NewsArticle", "headline": "x" "y"}')
def test_any_script_can_be_read(script: str) -> None:
    for node in read_json_ld([script, GOOD]):
        type_names(node)
