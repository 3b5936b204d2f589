"""The YAML file of sites: its form, and each kind of mistake with its line and column."""

from __future__ import annotations

import time
from datetime import timedelta
from pathlib import Path

import pytest

from crawlproj.errors import ConfigError, MistakesError
from crawlproj.news import yaml_file
from crawlproj.news.sites import parse_sites, read_sites
from crawlproj.urls.rules import SiteRevisit, SiteRules, UrlRule

WHOLE = """\
sites:
  - name: example            # of the source
    domains: [example.org]
    seeds: ["https://example.org/"]
    sources: ["https://example.org/feed.xml", "https://feeds.test/example"]
    host: www.example.org
    parameters:
      idpage: required
      language: {allowed: [cz, en]}
      include: optional
    redirects:
      - {from: "/", to: "/index.php?idpage=1"}
    accept: [text/html, application/pdf]
    rules:
      - ignore: {prefix: /calendar/}
      - ignore: {suffix: .avi}
      - article: {regex: "/[0-9]{4}/[0-9]{2}/"}
      - nostore: {prefix: /tag/}
    revisit: {policy: uniform, interval: 1h}
    fields: {title: "h1::text", text: "article p"}
"""


def lines_of(text: str) -> list[str]:
    with pytest.raises(MistakesError) as error:
        parse_sites(text, "f.yaml")
    lines = list(error.value.lines)
    assert str(error.value) == "\n".join(lines)
    assert all(line.startswith("f.yaml") for line in lines), lines
    return [line.removeprefix("f.yaml, ") for line in lines]


def test_the_whole_form_is_read() -> None:
    file = parse_sites(WHOLE, "f.yaml")
    assert file.sites == (
        SiteRules(
            name="example",
            domains=("example.org",),
            host="www.example.org",
            seeds=("https://example.org/",),
            sources=("https://example.org/feed.xml", "https://feeds.test/example"),
            rules=(
                UrlRule("ignore", prefix="/calendar/"),
                UrlRule("ignore", suffix=".avi"),
                UrlRule("article", regex="/[0-9]{4}/[0-9]{2}/"),
                UrlRule("nostore", prefix="/tag/"),
            ),
            fields={"title": "h1::text", "text": "article p"},
            revisit=SiteRevisit("uniform", timedelta(hours=1)),
        ),
    )
    assert file.warnings == (
        "f.yaml: accept, nostore, parameters, redirects are checked, but take effect in a "
        "later version",
    )


def test_name_domains_and_seeds_stand_for_each_other() -> None:
    text = """
sites:
- host: WWW.Example.org
- domains: [no, "*.Gov.si.", 192.0.2.1]
  sources: [gov.si/feed]
- seeds: ["http://www.example.com/news/"]
- {name: 2024, domains: [cz.example], seeds: [], sources: ["http://x.test/f"]}
"""
    # A bare `no` is false in YAML 1.1: here it is the text that stands there.
    sites = parse_sites(text, "f.yaml").sites
    assert [(site.name, site.domains, site.seeds) for site in sites] == [
        ("www.example.org", ("www.example.org",), ("https://www.example.org/",)),
        (
            "no",
            ("no", "gov.si", "192.0.2.1"),
            ("https://no/", "https://gov.si/", "https://192.0.2.1/"),
        ),
        ("example.com", ("example.com",), ("http://www.example.com/news/",)),
        ("2024", ("cz.example",), ()),
    ]
    assert [site.host for site in sites] == ["www.example.org", "", "", ""]
    assert sites[1].sources == ("http://gov.si/feed",)


def test_json_is_read_too_and_so_are_anchors() -> None:
    assert parse_sites('{"sites": [{"domains": ["a.test"]}]}', "f").sites[0].name == "a.test"
    text = """
sites:
- domains: [a.test]
  rules: &wordpress
  - article: {regex: "^/[0-9]{4}/"}
- domains: [b.test]
  rules: *wordpress
"""
    one, other = parse_sites(text, "f").sites
    assert one.rules == other.rules != ()


def test_a_rule_that_ignores_a_seed_is_warned_of() -> None:
    text = """
sites:
- domains: [a.test]
  sources: ["http://a.test/old/feed"]
  rules: [ignore: {prefix: /old/}]
"""
    assert parse_sites(text, "f").warnings == (
        "f: rules ignore seeds or sources, which are read all the same: http://a.test/old/feed "
        "(a.test)",
    )


SITE = "sites:\n- domains: [a.test]\n  "


@pytest.mark.parametrize(
    ("text", "line"),
    [
        # the file
        ("", "line 1, column 1: the file is empty: it must begin with `sites:`"),
        ("# nothing\n", "line 1, column 1: the file is empty"),
        ("hello", "line 1, column 1: the file must be a mapping"),
        ("- a\n- b", "line 1, column 1: the file must be a mapping"),
        ("site:\n- domains: [a.test]", "line 1, column 1: unknown key 'site': did you mean sites?"),
        ("sites:", "line 1, column 7: sites must be a list such as"),
        ("sites: []", "line 1, column 1: there are no sites in the list"),
        ("sites: {a: b}", "line 1, column 8: sites must be a list"),
        ("sites:\n- a.test", "line 2, column 3: a site must be a mapping"),
        ("sites:\n- {}", "line 2, column 3: a site is empty"),
        ("sites:\n-", "line 2, column 2: a site must be a mapping"),
        (SITE + "[a]: b", "line 3, column 3: a key of a site must be a text"),
        (SITE + "<<: {name: x}", "line 3, column 3: unknown key '<<'"),
        # not YAML
        ("sites:\n\t- a", "line 2, column 1: this is not YAML: a tab can't indent: use blanks"),
        ("sites: [a, b", "this is not YAML: did not find expected ',' or ']', while parsing a flow"),
        ("a: b: c", "line 1, column 5: this is not YAML: put quotes around a text that has a colon"),
        ('a: "\\d+"', "use single quotes"),
        ("a: @b", "line 1, column 4: this is not YAML: put quotes around a text that begins with @"),
        ("a: *b", "line 1, column 4: this is not YAML: there is no such anchor before it"),
        ("a: 1\n---\nb: 2", "line 2, column 1: this is not YAML: a file holds one document"),
        ("a: b\n\x00c", "line 2, column 1: a character that no text has: '\\x00'"),
        ("a: b\nč: \x1b[0m", "line 2, column 4: a character that no text has: '\\x1b'"),
        ("<html>\n<p class='x'>a: b</p>", "line 2, column 15: this is not YAML"),
        ("[" * 30, "line 1, column 21: nested more than 20 deep"),
        ("[" * 300_000, "line 1, column 21: nested more than 20 deep"),
        ("- " * 100_000 + "x", "line 1, column 41: nested more than 20 deep"),
        ("sites: &a [*a]", "line 1, column 8: a site must be a mapping"),
        ("sites: !!python/object/apply:os.system [x]", ""),
        # keys and names
        (SITE + "nam: x", "line 3, column 3: unknown key 'nam': did you mean name?"),
        (SITE + "colour: x", "unknown key 'colour'; there are: name, domains, host"),
        (SITE + "domains: [b.test]", "line 3, column 3: domains is given twice, before in line 2"),
        (SITE + "name:", "line 3, column 8: name is empty"),
        (SITE + "name: [x]", "line 3, column 9: name must be a text"),
        (SITE + "name: !x y", "line 3, column 9: name has a tag, '!x'"),
        (SITE + "name: a/b", "line 3, column 9: name: it must be a name of at most 100"),
        (SITE + "name: 'a,b'", "line 3, column 9: name: it must have no comma"),
        (SITE + "name: x\n- {domains: [b.test], name: x}", "line 4, column 29: there is a site 'x' already, in line 3"),
        # domains
        ("sites:\n- name: x", "line 2, column 3: a site must have domains"),
        ("sites:\n- domains: []", "line 2, column 3: a site must have domains"),
        ("sites:\n- domains: a.test", "line 2, column 12: domains must be a list such as [example.org]"),
        ("sites:\n- domains: [a.test, 'http://b.test/']", "line 2, column 21: domains: 'http://b.test/' is no name"),
        ("sites:\n- host: 'a b'", "line 2, column 9: host: 'a b' is no name of a host"),
        (SITE + "host: b.test", "line 3, column 9: the host b.test is in none of the site's domains"),
        (SITE + "\n- domains: [b.test, a.test]", "line 4, column 21: a.test belongs to the site in line 2 already"),
        # URLs
        (SITE + "seeds: [ftp://a.test/]", "line 3, column 11: seeds: not a web address: 'ftp://a.test/'"),
        (SITE + "seeds: 'http://a.test/'", "line 3, column 10: seeds must be a list"),
        (SITE + "seeds: [http://b.test/]", "line 3, column 11: the seed http://b.test/ is in none of"),
        (SITE + "seeds: []", "line 3, column 3: a site without seeds and sources has no start"),
        (SITE + "sources: ['a b']", "line 3, column 13: sources: not a web address: 'a b'"),
        (SITE + "sources: [[x]]", "line 3, column 13: an entry of sources must be a text"),
        (SITE + "sources: [~]", "line 3, column 13: an entry of sources is empty"),
        # rules
        (SITE + "rules: x", "line 3, column 10: rules must be a list"),
        (SITE + "rules: [x]", "line 3, column 11: a rule must be a mapping"),
        (SITE + "rules: [artcle: {prefix: /}]", "line 3, column 11: unknown key 'artcle': did you mean article?"),
        (SITE + "rules: [article: /x]", "line 3, column 20: article must be a mapping"),
        (SITE + "rules: [article: {}]", "line 3, column 20: article is empty"),
        (SITE + "rules: [article: {regexp: x}]", "line 3, column 21: unknown key 'regexp': did you mean regex?"),
        (SITE + "rules: [article: {regex: (}]", "line 3, column 28: regex = '(' is not a regular expression"),
        (SITE + "rules: [article: {regex: [x]}]", "line 3, column 28: regex must be a text"),
        (SITE + "rules: [article: {prefix: x}]", "line 3, column 29: prefix = 'x' makes no sense"),
        (SITE + "rules: [article: {prefix: /x, suffix: y}]", "line 3, column 20: a rule has exactly one"),
        (SITE + "rules:\n  - article: {prefix: /x}\n    ignore: {prefix: /y}", "line 5, column 5: a rule has one verdict"),
        # fields
        (SITE + "fields: [title]", "line 3, column 11: fields must be a mapping"),
        (SITE + "fields: {titel: h1}", "line 3, column 12: an article has no field 'titel': did you mean title?"),
        (SITE + "fields: {title: 'h1[['}", "'h1[['"),
        (SITE + "fields: {title: '//h1['}", "'//h1['"),
        (SITE + "fields: {title: }", "line 3, column 19: title is empty"),
        # what takes effect later is checked, too
        (SITE + "revisit: 1h", "line 3, column 12: revisit must be a mapping"),
        (SITE + "revisit: {policy: unifrom}", "line 3, column 21: unknown policy 'unifrom': did you mean uniform?"),
        (SITE + "revisit: {interval: 1y}", "line 3, column 23: interval = '1y' makes no sense"),
        (SITE + "revisit: {interval: 0}", "line 3, column 23: interval must be more than 0"),
        (SITE + "parameters: {a: maybe}", "line 3, column 19: the parameter a: one of required, optional"),
        (SITE + "parameters: {a: {alowed: [x]}}", "line 3, column 20: unknown key 'alowed'"),
        (SITE + "parameters: {a: {allowed: x}}", "line 3, column 29: allowed must be a list"),
        (SITE + "parameters: {a: [x]}", "line 3, column 19: the parameter a must be a mapping"),
        (SITE + "redirects: {from: /, to: /x}", "line 3, column 14: redirects must be a list"),
        (SITE + "redirects: [{from: /}]", "line 3, column 15: a redirect has no key `to`"),
        (SITE + "redirects: [{from: /, to: x y}]", "line 3, column 29: to = 'x y' is neither a path"),
        (SITE + "accept: [html]", "line 3, column 12: accept: 'html' is no type of content"),
    ],
)  # fmt: skip
def test_a_mistake_is_told_with_its_place(text: str, line: str) -> None:
    lines = lines_of(text)
    assert any(line in said for said in lines), lines
    assert len(lines) <= 2, lines


def test_all_mistakes_are_told_but_no_more_than_twenty() -> None:
    lines = lines_of("sites:\n- domains: [a.test]\n  rules:\n" + "  - article: x\n" * 50)
    assert len(lines) == 21
    assert lines[0].startswith("line 4, column 14: ")
    assert lines[19].startswith("line 23, ")
    assert lines[20] == "f.yaml: 30 more mistakes"


def test_aliases_of_aliases_end_soon(monkeypatch: pytest.MonkeyPatch) -> None:
    laughs = ["a: &a [x, x, x, x, x, x, x, x, x]"]
    for before, name in zip("abcdefgh", "bcdefghi", strict=True):
        laughs.append(f"{name}: &{name} [{', '.join([f'*{before}'] * 9)}]")
    start = time.perf_counter()
    assert lines_of("\n".join(laughs))
    monkeypatch.setattr(yaml_file, "MAX_NODES", 10_000)
    rules = ", ".join(["*r"] * 200)
    text = f"sites:\n- domains: [b.test]\n  rules: &s [&r {{article: {{prefix: /}}}}, {rules}]\n"
    text += "".join(f"- {{domains: [d{number}.test], rules: *s}}\n" for number in range(200))
    assert "more than 10,000 nodes: too many aliases (*name)" in lines_of(text)[-1]
    assert time.perf_counter() - start < 5


def test_a_thousand_sites_are_read_in_a_moment() -> None:
    entry = WHOLE.removeprefix("sites:\n")
    text = "sites:\n" + "".join(entry.replace("example", f"e{number}x") for number in range(1000))
    start = time.perf_counter()
    assert len(parse_sites(text, "f").sites) == 1000
    assert time.perf_counter() - start < 10


def test_a_file_that_can_not_be_read_is_told(tmp_path: Path) -> None:
    missing = tmp_path / "none.yaml"
    with pytest.raises(ConfigError, match=r"none\.yaml' can't be read: No such file"):
        read_sites(missing)
    with pytest.raises(ConfigError, match="can't be read: Is a directory"):
        read_sites(tmp_path)
    with pytest.raises(ConfigError, match="can't be read"):
        read_sites(Path("a\0b"))
    latin = tmp_path / "latin.yaml"
    latin.write_bytes("sites:\n- name: café".encode("latin-1"))
    with pytest.raises(ConfigError, match=r"latin\.yaml, line 2, column 12: .* not UTF-8 text"):
        read_sites(latin)
    wide = tmp_path / "wide.yaml"
    wide.write_text(WHOLE, "utf-16")
    with pytest.raises(ConfigError, match="line 1, column 1: the file is not UTF-8 text"):
        read_sites(wide)


def test_a_file_of_another_system_is_read(tmp_path: Path) -> None:
    path = tmp_path / "windows.yaml"
    path.write_bytes(b"\xef\xbb\xbf" + WHOLE.replace("\n", "\r\n").encode())
    assert read_sites(path).sites == parse_sites(WHOLE, "x").sites


def test_a_huge_file_is_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(yaml_file, "MAX_BYTES", 100)
    path = tmp_path / "huge.yaml"
    path.write_text(WHOLE)
    with pytest.raises(ConfigError, match="has more than 100 bytes"):
        read_sites(path)


def test_sites_are_chosen_by_name() -> None:
    file = parse_sites("sites: [{domains: [a.test]}, {domains: [b.test]}]", "f")
    assert [site.name for site in file.choose_sites(["b.test"]).sites] == ["b.test"]
    with pytest.raises(KeyError):
        file.choose_sites(["c.test"])
