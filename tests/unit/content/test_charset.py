from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from crawlproj.content.charset import (
    find_charset,
    is_mislabelled_utf8,
    looks_binary,
    to_utf8,
)

META = "<html><head><meta charset='{}'></head><p>"


@pytest.mark.parametrize(
    ("body", "header", "text", "charset"),
    [
        (b"\xef\xbb\xbfgr\xc3\xbcn", "iso-8859-1", "grün", "utf-8"),
        ("\ufeffgrün".encode("utf-16-le"), None, "grün", "utf-16le"),
        ("\ufeffgrün".encode("utf-16-be"), "utf-8", "grün", "utf-16be"),
        ("<p>grün</p>".encode("utf-16-le"), None, "<p>grün</p>", "utf-16le"),
        ("<p>grün</p>".encode("utf-16-be"), "utf-16", "<p>grün</p>", "utf-16be"),
        ("мир".encode("cp1251"), "windows-1251", "мир", "windows-1251"),
        ("мир".encode("koi8-r"), "KOI8-R", "мир", "koi8-r"),
        ("中文".encode("gb18030"), "gb2312", "中文", "gbk"),
        ("中文".encode("gb18030"), "GB18030", "中文", "gb18030"),
        ("中文".encode("big5"), "x-x-big5", "中文", "big5"),
        ("日本".encode("shift_jis"), "x-sjis", "日本", "shift_jis"),
        ("日本".encode("euc_jp"), "EUC-JP", "日本", "euc-jp"),
        ("日本".encode("iso2022_jp"), "iso-2022-jp", "日本", "iso-2022-jp"),
        ("한국".encode("euc_kr"), "ks_c_5601-1987", "한국", "euc-kr"),
        ("žlutý".encode("iso8859-2"), "latin2", "žlutý", "iso-8859-2"),
        ("žlutý".encode("cp1250"), "x-cp1250", "žlutý", "windows-1250"),
        ("мир".encode("cp866"), "cp866", "мир", "ibm866"),
        ("naïf".encode("mac-roman"), "x-mac-roman", "naïf", "macintosh"),
        ("ไทย".encode("cp874"), "tis-620", "ไทย", "windows-874"),
        ("שלום".encode("cp1255"), "iso-8859-8-i", "שלום", "iso-8859-8-i"),
        (b"gr\xfcn \x80", "iso-8859-1", "grün €", "windows-1252"),
        (b"gr\xfcn", None, "grün", "windows-1252"),
        ("grün".encode(), None, "grün", "utf-8"),
        (b"a\0b", None, "ab", "utf-8"),
    ],
)
def test_charset_is_found(body: bytes, header: str | None, text: str, charset: str) -> None:
    assert to_utf8(body, header) == (text.encode(), charset)


@pytest.mark.parametrize(
    "meta",
    [
        "<meta charset={}>",
        '<META http-equiv=x content="text/html; charset={}">',
        "<?xml version='1.0' encoding='{}'?>",
    ],
)
def test_charset_is_read_from_the_head(meta: str) -> None:
    html = meta.format("windows-1251") + "мир"
    assert to_utf8(html.encode("cp1251"))[0] == html.encode()


def test_header_goes_before_meta() -> None:
    assert to_utf8((META.format("koi8-r") + "мир").encode("cp1251"), "cp1251")[1] == "windows-1251"


def test_a_meta_element_in_a_comment_does_not_count() -> None:
    assert to_utf8(b"<!-- <meta charset=koi8-r> -->gr\xfcn")[1] == "windows-1252"


def test_a_meta_element_cannot_claim_utf_16() -> None:
    html = META.format("utf-16") + "grün"
    assert to_utf8(html.encode()) == (html.encode(), "utf-8")


@pytest.mark.parametrize(
    ("body", "label", "text"),
    [
        ("grün schön".encode(), "iso-8859-1", "grün schön"),
        ("grün schön".encode("cp1252"), "utf-8", "grün schön"),
        ("grün schön".encode()[:-1] + b"\xff", "utf-8", "grün schö\ufffd"),
        ("日本語です".encode(), "euc-jp", "日本語です"),
        ("grün".encode(), "utf-16", "grün"),
        (b"gr\xfcn", "no-such-thing", "grün"),
        (b"gr\xfcn", "hex", "grün"),
        (b"gr\xfcn", "idna", "grün"),
        (b"a\x81b", "windows-1252", "a\ufffdb"),
    ],
)
def test_labels_that_lie_do_no_harm(body: bytes, label: str, text: str) -> None:
    assert to_utf8(body, label)[0].decode() == text


FALSE_LABELS = (
    "iso-8859-1", "windows-1250", "windows-1251", "iso-8859-2", "iso-8859-7", "koi8-r", "ibm866",
    "windows-1255", "windows-1256", "tis-620", "macintosh", "gb2312", "gb18030", "big5", "shift_jis",
    "euc-jp", "euc-kr", "iso-2022-jp", "utf-16", "utf-16be",
)  # fmt: skip


@pytest.mark.parametrize("label", FALSE_LABELS)
@pytest.mark.parametrize(
    "text",
    [
        "grün",
        "Příliš žluťoučký kůň",
        "Утром над рекой",
        "日本語です",
        "대한민국",
        "中文网页",
        "it\u2019s",
    ],
)
def test_a_false_label_over_utf_8_is_not_believed(label: str, text: str) -> None:
    body = f"<title>{text}</title>".encode()
    meta = META.format(label).encode() + body
    assert to_utf8(body, label) == (body, "utf-8")
    assert to_utf8(meta) == (meta, "utf-8")
    assert is_mislabelled_utf8(body, label) and is_mislabelled_utf8(meta, None)


@pytest.mark.parametrize(
    ("text", "codec", "label"),
    [
        ("缺失", "gbk", "gb2312"),
        ("目录 a.txt 缺失", "gbk", "gbk"),
        ("水平统一", "gbk", "gb18030"),
        ("翻譯", "big5", "big5"),
        ("체크", "euc_kr", "euc-kr"),
        ("展張", "euc_jp", "euc-jp"),
        ("เซติฟ", "cp874", "windows-874"),
    ],
)
def test_a_few_words_that_are_valid_utf_8_by_chance_are_what_their_label_says(
    text: str, codec: str, label: str
) -> None:
    body = text.encode(codec)
    body.decode()  # it is valid
    assert to_utf8(body, label) == (text.encode(), label.replace("gb2312", "gbk"))
    assert not is_mislabelled_utf8(body, label)


@pytest.mark.parametrize("label", FALSE_LABELS[:-2])
def test_of_ascii_every_label_is_true(label: str) -> None:
    assert to_utf8(b"<p>plain", label)[0] == b"<p>plain"
    assert not is_mislabelled_utf8(b"<p>plain", label)


def test_a_byte_order_mark_is_believed_whatever_follows() -> None:
    body = b"\xff\xfe" + "grün schön".encode("utf-16-le")
    assert not is_mislabelled_utf8(body, "utf-16")
    assert to_utf8(b"\xef\xbb\xbf" + "grün".encode(), "koi8-r") == ("grün".encode(), "utf-8")


@pytest.mark.parametrize(
    "label",
    ["base64", "zip", "punycode", "unicode_escape", "undefined", "rot13", "\0", "é", "", "utf-7"],
)
def test_labels_that_are_no_charset_of_the_web_are_unknown(label: str) -> None:
    assert find_charset(label) is None


@pytest.mark.parametrize(
    "body",
    [
        b"\x89PNG\r\n\x1a\n",
        b"%PDF-1.4",
        b"PK\x03\x04",
        b"\x1f\x8b\x08\x00",
        b"GIF89a",
        b"RIFF\0\0\0\0WEBP",
        bytes(range(32)) * 9,
    ],
)
def test_binaries_are_known_by_their_bytes(body: bytes) -> None:
    assert looks_binary(body)


@pytest.mark.parametrize("text", ["", "<p>x", "plain\r\n\ttext", "日本語", "\x1b$B"])
@pytest.mark.parametrize("codec_name", ["utf-8", "utf-16", "utf-16-le", "utf-8-sig"])
def test_text_is_not_binary(text: str, codec_name: str) -> None:
    body = (text * 20).encode(codec_name)
    if codec_name != "utf-16-le" or text.isascii():
        assert not looks_binary(body)


@given(
    st.binary(),
    st.none()
    | st.text(max_size=12)
    | st.sampled_from(["utf-8", "utf-16", "gb18030", "big5", "cp1252"]),
)
def test_any_bytes_become_valid_utf_8_without_nul(body: bytes, label: str | None) -> None:
    text, charset = to_utf8(body, label)
    assert "\0" not in text.decode("utf-8") and charset


@given(
    st.text(st.characters(exclude_categories=["Cs", "Cc"]), min_size=1).filter(
        lambda text: not text.startswith("\ufeff")
    )
)
def test_utf_8_comes_through_unchanged(text: str) -> None:
    assert to_utf8(text.encode(), "utf-8")[0] == text.encode()
