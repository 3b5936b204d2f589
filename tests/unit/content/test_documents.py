"""Readers of documents: what they find in good ones, and that bad ones give a result or a failure
with a name, never more.
"""

from __future__ import annotations

import os
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from crawlproj.content.documents import reader_main, reply
from crawlproj.content.documents import result as found
from crawlproj.content.documents.formats import READER_VERSIONS, document_format
from crawlproj.content.documents.pdf import split_paragraphs
from crawlproj.content.html import parse_page
from crawlproj.content.text_urls import find_text_urls
from crawlproj.demo.files import make_pdf, make_zip
from crawlproj.duplicates.marks import make_page_text
from tests.support import compound
from tests.support import documents as make

READERS = reader_main.load_readers()
FORMATS = {
    "pdf": "pdf",
    "printed": "pdf",
    "docx": "office",
    "xlsx": "office",
    "pptx": "office",
    "odt": "opendocument",
}


def read(body: bytes) -> dict[str, Any]:
    return reader_main.read_document(body, READERS)


def run(text: str) -> str:
    return f"<w:r><w:t>{text}</w:t></w:r>"


@pytest.mark.parametrize(("name", "form"), FORMATS.items())
def test_a_format_is_known_by_its_bytes(name: str, form: str) -> None:
    assert document_format(make.GOOD[name]) == form


@pytest.mark.parametrize("name", make.GOOD)
def test_a_document_says_what_has_read_it(name: str) -> None:
    reader = "pdf" if name == "printed" else name
    said = read(make.GOOD[name])
    assert said["reader"] == reader
    document = reply.parse_reply(reader_main.json.dumps(said).encode(), "http://example.org/")
    assert make_page_text(document, [], "document", with_sample=False).reader == reader
    assert READER_VERSIONS[reader] > 0


def test_pdf() -> None:
    said = read(make_pdf("A title", "Some words", make.URL))
    assert said == {
        "title": "A title",
        "language": "en",
        "blocks": ["Some words"],
        "links": [(make.URL, "a", "Some words")],
        "cut": False,
        "reader": "pdf",
    }


def test_pdf_as_a_browser_prints_it() -> None:
    said = read(make.PRINTED)
    assert (said["title"], said["language"], said["blocks"][0]) == (
        "A printed page",
        "en",
        "Heading",
    )
    assert said["blocks"][1].startswith("Read the annex, or see") and said["blocks"][1].endswith(
        "is rather short."
    )
    assert said["blocks"][2:] == ["Second paragraph."]
    assert said["links"] == [
        ("https://example.org/annex.html", "a", "the annex"),
        ("https://example.org/in-text.html", "text", ""),
    ]


def test_lines_of_a_pdf_become_paragraphs_again() -> None:
    text = (
        "A heading\r\nThis is the first line of a paragraph that is bro\x02\r\nken at the "
        "margin, and ends here.\r\nThe next one"
    )
    assert list(split_paragraphs(text)) == [
        "A heading", "This is the first line of a paragraph that is broken at the margin, and ends "
                     "here.", "The next one",
    ]  # fmt: skip


def test_a_word_that_a_pdf_parts_at_the_margin_is_whole_again() -> None:
    show = (
        "BT /F1 9 Tf 9 90 Td (The first line of a paragraph that is bro-) Tj 0 -12 Td (ken at "
        "the margin.) Tj ET"
    )
    assert read(make.long_pdf(1, show))["blocks"] == [
        "The first line of a paragraph that is broken at the margin."
    ]


def test_docx_with_links_of_all_kinds() -> None:
    simple = '<w:fldSimple w:instr=" HYPERLINK &quot;https://example.org/simple.html&quot; "/>'
    code = (
        '<w:instrText> HYPERLINK "https://example.org/</w:instrText>',
        '<w:instrText>field.html" \\o "tip" </w:instrText>',
    )
    field = (
        f'<w:r><w:fldChar/>{code[0]}</w:r><w:r>{code[1]}<w:fldChar w:fldCharType="separate"/></w:r>'
    )
    link = f'<w:hyperlink r:id="r1">{run("a ")}{run("link")}</w:hyperlink>'
    body = f"<w:p>{run('One')}<w:r><w:tab/></w:r>{link}<w:del><w:r><w:delText>gone</w:delText></w:r></w:del></w:p>"
    said = read(make.word(f"{body}<w:p>{simple}{field}{run('two')}</w:p>", r1=make.URL))
    assert said["blocks"] == ["One a link", "two"]
    assert said["links"] == [
        (make.URL, "a", "a link"),
        ("https://example.org/simple.html", "a", ""),
        ("https://example.org/field.html", "a", ""),
    ]


def test_xlsx_by_rows() -> None:
    said = read(make.xlsx())
    assert said["blocks"] == ["Name 42", "rich text inline", "x"]
    assert said["links"] == [
        ("https://example.org/formula.html", "a", ""),
        (make.URL, "a", "shown"),
    ]


def test_pptx_in_the_order_of_its_slides() -> None:
    said = read(make.pptx())
    assert (said["blocks"], said["links"]) == (
        ["Two end", "Ten end", "A note end"],
        [(make.URL, "a", "Two")],
    )
    assert said["language"] == "en-GB"


def test_opendocument() -> None:
    said = read(make.odt())
    assert said["blocks"] == ["Heading", "See the link, see https://example.org/written.html."]
    assert said["links"] == [
        (make.URL, "a", "the link"),
        ("https://example.org/written.html", "text", ""),
    ]
    assert (said["title"], said["language"]) == ("A title", "fr-FR")
    assert read(make.ods())["blocks"] == ["a b", "a b"]


def test_rtf() -> None:
    said = read(make.rtf())
    assert (said["title"], said["blocks"]) == ("A title", ["Café {1} € Пр", "next", "the link"])
    assert said["links"] == [(make.URL, "a", "")]


def test_doc() -> None:
    said = read(compound.doc())
    assert (said["blocks"], said["links"]) == (
        ["Café the link here", "Приве́т", "end"],
        [(compound.URL, "a", "")],
    )


def test_ppt() -> None:
    said = read(compound.ppt())
    assert (said["blocks"], said["links"]) == (
        ["Überschrift", "Zwei", "café"],
        [(compound.URL, "a", "")],
    )


def test_xls() -> None:
    said = read(compound.xls())
    assert (said["blocks"], said["links"]) == (
        ["Name parted 1.5", "ok 7 2.5 1", "hi"],
        [(compound.URL, "a", "")],
    )


def test_urls_in_text_end_where_people_mean_them_to() -> None:
    text = (
        "(see http://a.test/x_(y)). Or <https://b.test/?q=1>, „https://c.test/ü“; "
        "http://d.test/e... http:// http://a.test/x_(y)"
    )
    assert find_text_urls(text) == [
        "http://a.test/x_(y)",
        "https://b.test/?q=1",
        "https://c.test/ü",
        "http://d.test/e",
    ]


def test_urls_of_a_plain_text_are_links() -> None:
    page = parse_page(
        b"See http://example.org/b#top, or not.", "http://example.org/a", None, "text/plain"
    )
    assert [(link.url, link.kind) for link in page.links] == [("http://example.org/b", "text")]


HOSTILE = {
    "empty zip": (make_zip(make.TYPES), "unknown"),
    "encrypted pdf": (make.locked_pdf(), "encrypted"),
    "encrypted odt": (make.odf("", manifest="<encryption-data/>"), "encrypted"),
    "no pdf": (b"%PDF-1.7\nnothing of the kind", "broken"),
    "cut pdf": (make.PRINTED[:9000], "broken"),
    "cut zip": (make.xlsx()[:-100], "broken"),
    "broken compound": (b"\xd0\xcf\x11\xe0\xa1\xb1\x1a\xe1" + bytes(1000), "broken"),
    "no office": (compound.compound({"Thumbs": b"x"}), "unknown"),
    "Word 6": (compound.doc(version=0x65), "old"),
    "Excel 5": (compound.compound({"Book": b"x"}), "old"),
    "Excel 5 inside": (compound.xls(version=0x500), "old"),
    "encrypted docx": (compound.compound({"EncryptedPackage": b"x"}), "encrypted"),
    "encrypted doc": (compound.doc(0x100), "encrypted"),
    "encrypted xls": (compound.xls(locked=True), "encrypted"),
    "encrypted ppt": (compound.ppt("dfc4d1f3"), "encrypted"),
    "no document": (b"hello", "unknown"),
    "empty": (b"", "unknown"),
}


@pytest.mark.parametrize("name", HOSTILE)
def test_what_cannot_be_read_has_a_name(name: str) -> None:
    body, reason = HOSTILE[name]
    assert read(body) == {"failed": reason} and reason in reply.FAILURES


def test_entities_are_never_resolved() -> None:
    paragraph = "<w:p><w:r><w:t>before &k; after</w:t></w:r></w:p>"
    said = read(make.word(paragraph, make.BOMB + "]>"))
    assert said["blocks"] == [], "a part with entities of its own is not read at all"
    outside = read(make.word(paragraph, '<!DOCTYPE x [<!ENTITY k SYSTEM "file:///etc/passwd">]>'))
    assert outside["blocks"] == []


def test_a_zip_bomb_is_read_up_to_the_bound(monkeypatch: pytest.MonkeyPatch) -> None:
    bomb = make.word("<w:p/>" * 10 + f"<!--{'a' * 30_000_000}-->" + f"<w:p>{run('behind')}</w:p>")
    assert len(bomb) < 100_000
    monkeypatch.setattr("crawlproj.content.documents.package.MAX_DECOMPRESSED", 10_000_000)
    said = read(bomb)
    assert (said["cut"], said["blocks"]) == (True, [])


def test_text_and_links_are_bounded() -> None:
    said = read(make.word("".join(f"<w:p>{run('word ' * 1000)}</w:p>" for _ in range(300))))
    assert said["cut"] and found.MAX_TEXT - 5000 < len("\n".join(said["blocks"])) <= found.MAX_TEXT
    urls = "".join(f"<w:p>{run(f'http://example.org/{n}')}</w:p>" for n in range(6000))
    said = read(make.word(urls))
    assert (
        len(said["links"]) == min(found.MAX_LINKS, found.MAX_TEXT // 220)
        or 4000 < len(said["links"]) <= found.MAX_LINKS
    )


def test_a_pdf_of_very_many_pages_is_cut() -> None:
    said = read(make.long_pdf(100_000))
    assert said["cut"] and len(said["blocks"]) == 2000


def test_a_pdf_that_was_cut_off_gives_what_is_there() -> None:
    whole = make_pdf("A title", "Some words", make.URL)
    assert read(whole[: whole.index(b"startxref")])["blocks"] == ["Some words"]


@settings(max_examples=300, deadline=None)
@given(
    st.sampled_from((b"%PDF-1.4", b"{\\rtf1", b"PK\x03\x04[Content_Types].xml", b"")),
    st.binary(max_size=2000),
)
def test_any_bytes_give_a_result_or_a_failure(start: bytes, rest: bytes) -> None:
    check(read(start + rest))


@settings(max_examples=400, deadline=None)
@given(st.data())
def test_a_damaged_document_gives_a_result_or_a_failure(data: st.DataObject) -> None:
    body = bytearray(make.GOOD[data.draw(st.sampled_from(sorted(set(make.GOOD) - {"printed"})))])
    for _ in range(data.draw(st.integers(1, 20))):
        at = data.draw(st.integers(0, len(body) - 1))
        body[at : at + data.draw(st.integers(0, 3))] = data.draw(st.binary(max_size=4))
    check(read(bytes(body)))


RTF_WORDS = (
    b"{",
    b"}",
    b"\\par ",
    b"\\u-10179",
    b"\\u56832?",
    b"\\uc5 ",
    b"\\'e9",
    b"\\*",
    b"\\fldinst",
    b"HYPERLINK ",
    b"\\bin9 ",
    b"\\f1",
)


@settings(max_examples=300, deadline=None)
@given(
    st.lists(
        st.sampled_from(
            (
                *RTF_WORDS,
                b"\\ansicpg932 ",
                b"\\fonttbl",
                b"\\fcharset204 ",
                b"words",
                b"\\",
                b"http://a.b/c",
            )
        )
    )
)
def test_any_rtf_gives_a_result(words: list[bytes]) -> None:
    said = read(b"{\\rtf1" + b"".join(words))
    check(said)
    assert "failed" not in said


def check(said: dict[str, Any]) -> None:
    """It is one of the two, and the crawl's end of the pipe takes it."""
    try:
        document = reply.parse_reply(
            reader_main.json.dumps(said, ensure_ascii=False).encode("utf-8", "replace"),
            "http://example.org/",
        )
    except reply.DocumentReadError as error:
        assert said == {"failed": str(error)} and str(error) in reply.FAILURES
    else:
        assert all(block.text for block in document.blocks) and len(document.block_digest) == 16


@pytest.mark.parametrize(
    "said",
    [
        b"", b"{", b"[]", b"null", b"7", b"[" * 100_000, b'{"failed": "other"}', b'{"failed": []}', b"{}", os.urandom(500),
        b'{"title": 1, "language": "", "blocks": [], "links": [], "cut": false}',
        b'{"title": "a\\u0000", "language": "", "blocks": [], "links": [], "cut": false}',
        b'{"title": "", "language": "", "blocks": ["\\ud800"], "links": [], "cut": false}',
        b'{"title": "", "language": "", "blocks": [["a"]], "links": [], "cut": false}',
        b'{"title": "", "language": "", "blocks": [], "links": [["http://a.b/", "canonical", ""]], '
        b'"cut": false}',
        b'{"title": "", "language": "", "blocks": [], "links": [["http://a.b/"]], "cut": false}',
        b'{"title": "", "language": "", "blocks": [], "links": {"abc": 1}, "cut": false}',
        b'{"title": "", "language": "' + b"x" * 99 + b'", "blocks": [], "links": [], "cut": false}',
        b'{"title": "", "language": "", "blocks": ["' + b"x" * 2_100_000 + b'"], "links": [], "cut": false}',
    ],
)  # fmt: skip
def test_nonsense_from_the_reader_is_garbage(said: bytes) -> None:
    with pytest.raises(reply.DocumentReadError, match="garbage"):
        reply.parse_reply(said, "http://example.org/")


def test_links_are_made_absolute_and_canonical() -> None:
    said = (
        b'{"title": "", "language": "", "blocks": [], "cut": false, "links": [["b.html#x", '
        b'"a", "t"], ["mailto:a@b.c", "a", ""]]}'
    )
    assert [
        (link.url, link.text)
        for link in reply.parse_reply(said, "http://example.org/d/a.pdf").links
    ] == [
        ("http://example.org/d/b.html", "t"),
    ]


def test_a_document_of_very_many_blocks_is_cut_and_checked_in_slices() -> None:
    many = found.DocumentResult()
    with pytest.raises(found.LimitReachedError):
        for _ in range(found.MAX_BLOCKS + 1):
            many.add_block("x")
    many.links = [(f"/{number}", "a", "") for number in range(5_000)]
    said = reader_main.json.dumps(many.as_values()).encode()
    slices = reply.parse_reply_in_slices(said, "http://example.org/")
    count = 0
    try:
        while True:
            next(slices)
            count += 1
    except StopIteration as end:
        document = end.value
    assert len(document.blocks) == found.MAX_BLOCKS
    assert len(document.links) == 5_000
    # 200 links at once, and 100,000 characters of text, where each block counts for some more.
    assert count > 5_000 / 200 + 2 * 20 * found.MAX_BLOCKS / 100_000
    many.blocks.append("one too many")
    with pytest.raises(reply.DocumentReadError, match="garbage"):
        reply.parse_reply(reader_main.json.dumps(many.as_values()).encode(), "http://example.org/")
