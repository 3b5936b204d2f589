"""What office programs write into their files besides plain paragraphs; found by reading files of
LibreOffice.
"""

from __future__ import annotations

import json
import struct
from typing import Any

from crawlproj.content.documents import reader_main
from crawlproj.content.documents.reply import parse_reply
from crawlproj.demo.files import make_zip
from tests.support import compound
from tests.support import documents as make

READERS = reader_main.load_readers()


def read(body: bytes) -> dict[str, Any]:
    return reader_main.read_document(body, READERS)


def run(text: str) -> str:
    return f"<w:r><w:t>{text}</w:t></w:r>"


def test_an_ampersand_in_a_link_stays_one() -> None:
    link = f'<w:p><w:hyperlink r:id="r1">{run("A&amp;B &lt;c&gt;")}</w:hyperlink></w:p>'
    said = read(make.word(link, r1="https://example.org/?a=1&amp;b=2"))
    assert said["links"] == [("https://example.org/?a=1&b=2", "a", "A&B <c>")]
    said = read(
        make.odf(
            '<text:p><text:a xlink:href="https://example.org/?a=1&amp;b=2">x</text:a></text:p>'
        )
    )
    assert said["links"] == [("https://example.org/?a=1&b=2", "a", "x")]


def test_a_text_box_is_told_once_and_does_not_part_its_paragraph() -> None:
    box = f"<w:txbxContent><w:p>{run('in the box')}</w:p></w:txbxContent>"
    both = (
        "<mc:AlternateContent "
        f"xmlns:mc='m'><mc:Choice>{box}</mc:Choice><mc:Fallback>{box}</mc:Fallback></mc:AlternateContent>"
    )
    assert read(make.word(f"<w:p>{run('before ')}<w:r>{both}</w:r>{run('after')}</w:p>"))[
        "blocks"
    ] == [
        "in the box",
        "before after",
    ]


def test_comments_and_truths_of_a_sheet() -> None:
    sheet = (
        '<sheetData><row><c t="b"><v>1</v></c><c t="b"><v>0</v></c><c '
        't="str"><v>text</v></c></row></sheetData>'
    )
    comments = (
        "<comments><commentList><comment><text><r><t>a "
        "</t></r><r><t>comment</t></r></text></comment></commentList></comments>"
    )
    parts = {
        "xl/worksheets/sheet1.xml": f"<worksheet>{sheet}</worksheet>",
        "xl/comments1.xml": comments,
    }
    assert read(make_zip({**make.TYPES, **parts}))["blocks"] == ["TRUE FALSE text", "a comment"]


def test_notes_and_comments_of_opendocument_come_after_their_paragraph() -> None:
    link = '<text:a xlink:href="../beside.html">beside</text:a>'
    body = f"<text:note-body><text:p>A note, {link}</text:p></text:note-body>"
    note = f"<text:note><text:note-citation>1</text:note-citation>{body}</text:note>"
    said = read(
        make.odf(
            f"<text:p>Text{note} goes on.</text:p><text:p>Page "
            "<text:page-number>9</text:page-number></text:p>"
        )
    )
    assert said["blocks"] == ["Text goes on.", "A note, beside", "Page"]
    assert said["links"] == [("beside.html", "a", "beside")], (
        "a document is a folder of its own: ../ is beside it"
    )
    cell = "<table:table-cell><annotation><text:p>comment</text:p></annotation><text:p>{}</text:p></table:table-cell>"
    said = read(
        make.odf(
            f"<table:table-row>{cell.format('a')}{cell.format('b')}</table:table-row>",
            "spreadsheet",
        )
    )
    assert said["blocks"] == ["a b", "comment", "comment"]


def test_rtf_in_the_order_in_which_it_is_written() -> None:
    note = (
        rb"{\*\footnote \chftn The note, see {\field{\*\fldinst HYPERLINK "
        rb'"https://example.org/n"}{\fldrslt this}}\par second}'
    )
    title = rb"{\info{\upr{\title ??}{\*\ud{\title \u1047?\u1072?}}}}"
    said = read(
        rb"{\rtf1\ansi" + title + rb"nb\~space a\_b soft\-ly" + note + rb" goes on.\par end}"
    )
    assert (said["title"], said["blocks"]) == (
        "\u0417\u0430",
        ["nb space a-b softly goes on.", "end", "The note, see this", "second"],
    )
    assert said["links"] == [("https://example.org/n", "a", "")]


def test_links_inside_of_an_rtf_lead_nowhere() -> None:
    inside = rb'{\field{\*\fldinst HYPERLINK \\l "_Toc1"}{\fldrslt here}}'
    outside = rb"{\field{\*\fldinst HYPERLINK https://example.org/n}{\fldrslt  there}}"
    said = read(rb"{\rtf1\ansi " + inside + outside + rb"}")
    assert (said["blocks"], said["links"]) == (["here there"], [("https://example.org/n", "a", "")])


def test_what_was_moved_in_a_docx_is_told_once_and_its_hyphens_are_seen() -> None:
    moved = "<w:moveFrom><w:r><w:t>moved</w:t></w:r></w:moveFrom>"
    place = "<w:pPr><w:rPr><w:moveFrom/></w:rPr></w:pPr>"
    target = (
        "<w:moveTo><w:r><w:t>moved</w:t></w:r></w:moveTo><w:r><w:t> "
        "e</w:t><w:noBreakHyphen/><w:t>mail</w:t></w:r>"
    )
    assert read(make.word(f"<w:p>{place}{moved}</w:p><w:p>{target}</w:p>"))["blocks"] == [
        "moved e-mail"
    ]


def test_text_boxes_of_rtf_come_after_the_text() -> None:
    box = (
        rb"{\shp{\*\shpinst\shpz0{\sp{\sn shapeType}{\sv 202}}{\shptxt In the box\par "
        rb"more\par}}{\shprslt old readers}}"
    )
    said = read(rb"{\rtf1\ansi Before" + box + rb" and after.\par end}")
    assert said["blocks"] == ["Before and after.", "end", "In the box", "more"]


def test_signs_of_word_are_no_text() -> None:
    body = compound.doc().replace(b"Caf\xe9 ", b"C\x1fa\x1e\x02")
    assert read(body)["blocks"][0] == "Ca-the link here"


def test_a_nul_in_a_link_does_not_cost_the_document() -> None:
    said = read(compound.doc().replace(b"linked.html", b"linked\0html"))
    assert said["links"] == [("https://example.org/linkedhtml", "a", "")]
    assert parse_reply(json.dumps(said).encode(), "http://example.org/").blocks


def workbook(*records: tuple[int, bytes]) -> bytes:
    stream = b"".join(
        struct.pack("<HH", kind, len(body)) + body
        for kind, body in ((0x809, struct.pack("<HH", 0x600, 5)), *records)
    )
    return compound.compound({"Workbook": stream})


def test_numbers_of_an_old_sheet_are_whole_and_results_are_told() -> None:
    place = struct.pack("<HHH", 0, 0, 0)
    tail = bytes(8)
    said = read(
        workbook(
            (0x203, place + struct.pack("<d", 1234567.25)),
            (0x06, place + struct.pack("<d", 0.1) + tail),
            (0x06, place + b"\x01\x00\x01\x00\x00\x00\xff\xff" + tail),
            (0x06, place + b"\x00" * 6 + b"\xff\xff" + tail),
            (0x207, struct.pack("<HB", 2, 0) + b"go"),
            (0x205, place + b"\x00\x00"),
            (0x205, place + b"\x07\x01"),
        )
    )
    assert said["blocks"] == ["1234567.25 0.1 TRUE go FALSE"]


def test_an_old_sheet_links_to_files_beside_it() -> None:
    file = bytes.fromhex("0303000000000000c000000000000046")
    links = [
        bytes(32) + file + struct.pack("<HI", up, len(path) + 1) + path + b"\0"
        for up, path in ((0, b"sub\\a.html"), (2, b"b.html"))
    ]
    outside = bytes(32) + file + struct.pack("<HI", 0, 9) + b"C:\\a.html\0"
    said = read(workbook(*((0x1B8, body) for body in (*links, outside))))
    assert said["links"] == [("sub/a.html", "a", ""), ("../../b.html", "a", "")]
