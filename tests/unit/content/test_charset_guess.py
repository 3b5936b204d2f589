from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from crawlproj.content.charset import to_utf8
from crawlproj.content.charset_guess import MOST_FED, find_words, top_domain
from crawlproj.content.feeds import parse_entries, sniff_kind
from crawlproj.content.html import parse_page
from crawlproj.content.slices import BIG_BODY
from tests.support.languages import CHARSETS, SENTENCES, encode, make_page, make_text

CZECH = " ".join(SENTENCES["Czech"])


def url_at(domain: str) -> str:
    return f"https://www.example.{domain}/page.html"


@pytest.mark.parametrize("letters", [300, 2_000])
@pytest.mark.parametrize(("charset", "language", "domain"), CHARSETS)
def test_undeclared_pages_are_read_under_any_domain(
    charset: str, language: str, domain: str, letters: int
) -> None:
    wrong = []
    for seed in range(20):
        page = make_page(make_text(language, letters, seed))
        for place in (domain, "com", "cz", "jp"):
            text, found = to_utf8(encode(page, charset), None, url_at(place))
            if text.decode() != page:
                wrong.append((place, seed, found))
    assert len(wrong) <= 1


@pytest.mark.parametrize(("charset", "language", "domain"), CHARSETS)
def test_plain_text_and_big_pages_are_guessed_too(charset: str, language: str, domain: str) -> None:
    text = " ".join(make_text(language, 500, 1))
    plain = parse_page(encode(text, charset), url_at(domain), content_type="text/plain")
    assert [block.text for block in plain.blocks] == [text]
    script = f"<script>{'var a = 1; ' * (BIG_BODY // 10)}</script>"
    big = parse_page(encode(f"{script}<p>{text}</p>", charset), url_at(domain))
    assert [block.text for block in big.blocks] == [text]


def test_feeds_are_guessed_too() -> None:
    title = SENTENCES["Russian"][0]
    feed = f"<rss><item><title>{title}</title><link>http://a.ru/</link></item></rss>"
    entries = parse_entries(feed.encode("koi8-r"), "http://a.ru/feed")
    assert [entry.title for entry in entries] == [title]
    assert sniff_kind(feed.encode("koi8-r")) == "feed"


@pytest.mark.parametrize(
    ("charset", "language", "late"),
    [
        ("iso-8859-7", "Greek", "Άνοιξη"),
        ("iso-8859-7", "Greek", "μαζί\u2019 αυτό"),
        ("windows-1253", "Greek", "Άνοιξη \u2022 Άλλα"),
        ("windows-1250", "Hungarian", "\u201eszép\u201d"),
    ],
)
def test_one_letter_far_down_tells_apart_charsets_that_are_alike(
    charset: str, language: str, late: str
) -> None:
    plain = [words for words in SENTENCES[language] if "Ά" not in words]
    text = "<p>" + "<p>".join([*plain * 5, late])
    assert to_utf8(encode(text, charset), None, url_at("com"))[0].decode() == text


def test_the_domain_decides_where_letters_are_few() -> None:
    body = "<p>Povodí Ohře</p>".encode("cp1250")
    assert to_utf8(body, None, url_at("cz"))[0].decode() == "<p>Povodí Ohře</p>"
    assert to_utf8(body, None, url_at("com"))[1] == "windows-1252"


@pytest.mark.parametrize("domain", ["com", "uk", "cz", "pl", "ru", "gr", "jp", "cn", "kr", "th"])
@pytest.mark.parametrize(
    "text",
    [
        "“Hello,” she said. It\u2019s a long \u2013 very long \u2013 way home…",
        "© 2009 Example Ltd. ® • All rights reserved »",
        "Only £40, was £71.6m, now £11.99 and £10bn; size 2 \xd7 4",
        "a\xa0b\xa0c\xa0d",
    ],
)
def test_signs_are_no_letters_of_another_charset(text: str, domain: str) -> None:
    assert to_utf8(text.encode("cp1252"), None, url_at(domain))[0].decode() == text


@pytest.mark.parametrize("domain", ["com", "cz", "pl", "hu"])
def test_quotation_marks_are_no_czech_letters(domain: str) -> None:
    text = "»Auf« und »zu« für »über«"
    assert to_utf8(text.encode("cp1252"), None, url_at(domain))[0].decode() == text


@pytest.mark.parametrize("domain", ["ru", "gr", "jp", "cn", "kr", "th", "il"])
def test_words_with_an_accent_are_in_no_other_script(domain: str) -> None:
    text = "The café staff wrote a résumé for naïve señor Müller and his fiancée."
    assert to_utf8(text.encode("cp1252"), None, url_at(domain))[0].decode() == text


@pytest.mark.parametrize(
    ("label", "charset"),
    [
        ("iso-8859-1", "windows-1252"),
        ("windows-1252", "windows-1252"),
        ("iso-8859-2", "iso-8859-2"),
        ("koi8-r", "koi8-r"),
        ("gb2312", "gbk"),
    ],
)
def test_what_is_declared_is_never_guessed(label: str, charset: str) -> None:
    body = CZECH.encode("cp1250")
    assert to_utf8(body, label, url_at("cz"))[1] == charset
    assert to_utf8(b"<meta charset=%b>" % label.encode() + body, None, url_at("cz"))[1] == charset


@pytest.mark.parametrize("label", ["utf-8", "utf-16", "no-such-thing"])
def test_what_is_declared_and_impossible_is_guessed(label: str) -> None:
    body = CZECH.encode("cp1250")
    assert to_utf8(body, label, url_at("cz")) == (CZECH.encode(), "windows-1250")


def test_undeclared_utf_8_with_a_broken_letter_stays_utf_8() -> None:
    body = CZECH.encode()[:-1] + b"\xe1 " + "ř".encode()[:1]
    text, charset = to_utf8(body, None, url_at("cz"))
    assert charset == "utf-8" and text.decode().startswith(CZECH[:-1])


def test_only_words_with_letters_beyond_ascii_are_judged() -> None:
    page = make_page(["Příliš žluťoučký kůň", "plain words", "§40 and •", "pěl"])
    expected = "Příliš žluťoučký kůň Příliš žluťoučký kůň pěl"
    assert find_words(page.encode("cp1250")).decode("cp1250") == expected


@pytest.mark.parametrize(
    "word", [b"\xe9", b"\xe9a", b"a\xe9 ", b"<\xe9", b"\x92 ", b"a" * 600 + b"\xe9"]
)
def test_no_page_is_judged_by_more_than_its_beginning(word: bytes) -> None:
    assert len(find_words(word * 200_000)) <= MOST_FED


@pytest.mark.parametrize(
    ("url", "expected"),
    [
        ("http://www.example.cz/", b"cz"),
        ("https://EXAMPLE.CO.JP:8080/a.b/c?d=e.f", b"jp"),
        ("http://xn--e1afmkfd.xn--p1ai/", b"xn--p1ai"),
        ("http://10.0.0.1/", b"1"),
        ("http://localhost/", b"localhost"),
        ("http://[::1]:80/", None),
        ("http://пример.рф/", None),
        ("http://a_b/", None),
        ("", None),
    ],
)
def test_top_domain_is_the_last_label_of_the_host(url: str, expected: bytes | None) -> None:
    assert top_domain(url) == expected


@given(st.binary(), st.text(max_size=12), st.sampled_from(["", "cz", "ru", "jp", "kr", "th", "vn"]))
def test_any_bytes_from_anywhere_are_read(body: bytes, host: str, domain: str) -> None:
    text, charset = to_utf8(b"\xff\xe9 " + body, None, f"http://{host}.{domain}/")
    assert charset
    text.decode()
