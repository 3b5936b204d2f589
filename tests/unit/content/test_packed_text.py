"""The text of a page as it is stored, and what comes back of it."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from crawlproj.content.document import Block, Document
from crawlproj.content.html import parse_page
from crawlproj.content.packed_text import (
    MAX_TEXT,
    full_text,
    kind_of_path,
    main_text,
    pack_document,
    stored_form,
    unpack_blocks,
    visible_blocks,
)

PAGE = b"""<html><head><title>The old ferry</title>
<meta name="description" content="About a ferry"><meta name="keywords" content="ferry, river"></head>
<body><nav><ul><li><a href=/>Home</a></li><li><a href=/news>News</a></li></ul></nav>
<article><h1>The ferry stays</h1>
<p>The council has decided that the old ferry across the river will stay for at least another ten years.</p>
<h2>What it costs</h2>
<p>Each crossing costs the town more than it earns, but nobody wanted to be the one who closes it, she said.</p>
<table><tr><td>Crossings</td><td>1,200</td></tr></table>
<figure><img src=f.jpg><figcaption>The ferry in spring</figcaption></figure>
<p>It was built by hand in the winter of a year that nobody in the village remembers exactly any more.</p>
</article>
<footer><p>We use cookies to make this site better for everybody who visits it, and you can say no.</p></footer>
</body></html>"""


def test_blocks_know_what_they_are() -> None:
    blocks = unpack_blocks(pack_document(parse_page(PAGE, "http://a.example/")))
    kinds = {block.text: block.kind for block in blocks}
    assert kinds["The old ferry"] == "title"
    assert kinds["About a ferry"] == "description"
    assert kinds["ferry, river"] == "keywords"
    assert kinds["The ferry stays"] == kinds["What it costs"] == "heading"
    assert kinds["Home"] == "list"
    assert kinds["Crossings"] == "table"
    assert kinds["The ferry in spring"] == "caption"
    assert next(kind for text, kind in kinds.items() if text.startswith("Each")) == "text"


def test_full_text_has_all_that_is_visible_and_main_text_no_boilerplate() -> None:
    blocks = unpack_blocks(pack_document(parse_page(PAGE, "http://a.example/")))
    full = full_text(blocks)
    main = main_text(blocks)
    assert "Home" in full and "cookies" in full and "Crossings" in full
    assert "About a ferry" not in full
    for text in ("The ferry stays", "The council", "What it costs", "Each crossing", "by hand"):
        assert text in main
    assert "Home" not in main and "cookies" not in main


def test_a_page_without_paragraphs_is_all_main_text() -> None:
    page = b"<ul><li>Bread 2.50</li><li>Butter 3.20</li></ul>"
    assert main_text(unpack_blocks(pack_document(parse_page(page, "http://a.example/")))) == (
        "Bread 2.50\nButter 3.20"
    )


def test_the_innermost_element_that_says_something_counts() -> None:
    assert kind_of_path("html/body/table/tr/td/div/p") == "text"
    assert kind_of_path("html/body/ul/li.item/div") == "list"
    assert kind_of_path("div.h1/div.li") == "text"
    assert kind_of_path("") == "text"


texts = st.text(min_size=1).map(lambda text: " ".join(text.split())).filter(bool)
blocks_of_pages = st.lists(
    st.builds(
        Block, texts, st.sampled_from(["", "div/p", "ul/li", "h2"]), st.booleans(), st.floats(0, 1)
    )
)


@given(blocks_of_pages)
def test_what_is_stored_comes_back_as_it_is_judged(blocks: list[Block]) -> None:
    """A page is judged by the same values when it is new and when it is stored."""
    back = unpack_blocks(pack_document(Document("http://a.example/", blocks=blocks)))
    expected = stored_form(blocks)
    assert [block._replace(text="") for block in back] == [b._replace(text="") for b in expected]
    for found, block in zip(back, expected, strict=True):
        assert found.text == block.text.encode("utf-8", "replace").decode()


def test_odd_texts_are_stored_and_the_longest_are_cut() -> None:
    for text in ("", "a\0b", "\u200f\u05e9\u05dc\u05d5\u05dd", "e\u0301", "\ud800", "漢字仮名"):
        page = f"<p>{text}</p>".encode("utf-8", "replace")
        assert isinstance(pack_document(parse_page(page, "http://a.example/")), bytes)
    long = Document("http://a.example/", blocks=[Block("word " * 1000)] * 3000)
    kept = full_text(unpack_blocks(pack_document(long)))
    assert MAX_TEXT <= len(kept) < MAX_TEXT + 10_000
    tiny = Document("http://a.example/", blocks=[Block("x")] * 1_000_000)
    assert len(visible_blocks(unpack_blocks(pack_document(tiny)))) == 1_000_000
    assert pack_document(Document("http://a.example/")) == b""
    assert unpack_blocks(b"") == []
