"""Documents for tests, good and hostile, made by hand: what is in them is known to the letter."""

from __future__ import annotations

import io
import zipfile
import zlib
from pathlib import Path

from crawlproj.demo.files import PACKAGE, RELATION, WORD, make_docx, make_pdf, make_zip
from tests.support import compound

DRAWING = "http://schemas.openxmlformats.org/drawingml/2006/main"
SHEET = "http://schemas.openxmlformats.org/spreadsheetml/2006/main"
ODF = "urn:oasis:names:tc:opendocument:xmlns"
URL = "https://example.org/linked.html"
TYPES = {"[Content_Types].xml": f'<Types xmlns="{PACKAGE}/content-types"/>'}
PRINTED = (Path(__file__).resolve().parents[1] / "data" / "printed.pdf").read_bytes()
"""Printed by a browser, from a page with a link and a URL in its text."""
BOMB = (
    """<!DOCTYPE x [<!ENTITY a "aaaaaaaaaa"><!ENTITY b "&a;&a;&a;&a;&a;&a;&a;&a;&a;&a;">"""
    + "".join(
        f'<!ENTITY {name} "{f"&{before};" * 10}">'
        for before, name in zip("bcdefghij", "cdefghijk", strict=True)
    )
)
"""Ten billion letters, as soon as somebody resolves &k;."""


def relations(**urls: str) -> str:
    parts = (
        f'<Relationship Id="{name}" Type="{RELATION}/hyperlink" Target="{url}" '
        'TargetMode="External"/>'
        for name, url in urls.items()
    )
    return f'<Relationships xmlns="{PACKAGE}/relationships">{"".join(parts)}</Relationships>'


def word(body: str, head: str = "", **urls: str) -> bytes:
    document = (
        f'{head}<w:document xmlns:w="{WORD}" '
        f'xmlns:r="{RELATION}"><w:body>{body}</w:body></w:document>'
    )
    return make_zip(
        {**TYPES, "word/document.xml": document, "word/_rels/document.xml.rels": relations(**urls)}
    )


def xlsx() -> bytes:
    strings = "<si><t>Name</t></si><si><r><t>rich </t></r><r><t>text</t></r></si>"
    rows = (
        '<row><c t="s"><v>0</v></c><c><v>42</v></c><c t="s"><v>99</v></c></row>'
        '<row><c t="s"><v>1</v></c><c t="inlineStr"><is><t>inline</t></is></c></row>'
        '<row><c><f>HYPERLINK("https://example.org/formula.html","x")</f><v>x</v></c></row>'
    )
    links = '<hyperlinks><hyperlink ref="A1" r:id="r1" display="shown"/></hyperlinks>'
    sheet = (
        f'<worksheet xmlns="{SHEET}" '
        f'xmlns:r="{RELATION}"><sheetData>{rows}</sheetData>{links}</worksheet>'
    )
    return make_zip({
        **TYPES, "xl/sharedStrings.xml": f'<sst xmlns="{SHEET}">{strings}</sst>',
        "xl/worksheets/sheet1.xml": sheet,
        "xl/worksheets/_rels/sheet1.xml.rels": relations(r1=URL),
    })  # fmt: skip


def pptx() -> bytes:
    def slide(text: str, link: str = "") -> str:
        run = f'<a:r><a:rPr lang="en-GB">{link}</a:rPr><a:t>{text}</a:t></a:r>'
        return (
            f'<p:sld xmlns:p="p" xmlns:a="{DRAWING}" xmlns:r="{RELATION}"><a:p>{run}<a:r><a:t> '
            "end</a:t></a:r></a:p></p:sld>"
        )

    return make_zip(
        {
            **TYPES,
            "ppt/notesSlides/notesSlide1.xml": slide("A note"),
            "ppt/slides/slide10.xml": slide("Ten"),
            "ppt/slides/slide2.xml": slide("Two", '<a:hlinkClick r:id="r1"/>'),
            "ppt/slides/_rels/slide2.xml.rels": relations(r1=URL),
        }
    )


def odf(body: str, kind: str = "text", manifest: str = "") -> bytes:
    spaces = (
        f'xmlns:text="{ODF}:text:1.0" xmlns:table="{ODF}:table:1.0" '
        'xmlns:xlink="http://www.w3.org/1999/xlink"'
    )
    meta = (
        '<m xmlns:dc="http://purl.org/dc/elements/1.1/"><dc:title>A '
        "title</dc:title><dc:language>fr-FR</dc:language></m>"
    )
    file = io.BytesIO()
    with zipfile.ZipFile(file, "w") as archive:
        archive.writestr(zipfile.ZipInfo("mimetype"), f"application/vnd.oasis.opendocument.{kind}")
        archive.writestr("content.xml", f"<office {spaces}>{body}</office>", zipfile.ZIP_DEFLATED)
        archive.writestr("meta.xml", meta)
        archive.writestr("META-INF/manifest.xml", f"<manifest>{manifest}</manifest>")
    return file.getvalue()


def odt() -> bytes:
    changes = "<text:tracked-changes><text:p>deleted</text:p></text:tracked-changes>"
    link = f'<text:a xlink:href="{URL}">the <text:span>link</text:span></text:a>'
    return odf(
        f"{changes}<text:h>Heading</text:h><text:p>See<text:s/>{link}, see "
        "https://example.org/written.html.</text:p>"
    )


def ods() -> bytes:
    cells = "".join(
        f"<table:table-cell><text:p>{text}</text:p></table:table-cell>" for text in ("a", "b")
    )
    return odf(
        f"<table:table-row>{cells}</table:table-row><table:table-row>{cells}</table:table-row>",
        "spreadsheet",
    )


def rtf() -> bytes:
    fonts = r"{\fonttbl{\f0\fcharset0 Arial;}{\f1\fcharset204 Arial;}}"
    field = rf'{{\field{{\*\fldinst HYPERLINK "{URL}" }}{{\fldrslt the link}}}}'
    text = (
        r"{\*\generator Nobody;}{\info{\title A title}{\author X}}Caf\'e9 \{1\} \u8364? "
        r"\f1\'cf\'f0\f0\par\tab next\line " + field
    )
    return rf"{{\rtf1\ansi\ansicpg1252{fonts}{text}{{\pict 00ff}}}}".encode("latin-1")


def long_pdf(pages: int, show: str = "BT /F1 9 Tf 9 9 Td (a page of very many) Tj ET") -> bytes:
    """All pages are the same object: small, and endless to read."""
    kids = " ".join(["3 0 R"] * pages).encode()
    stream = zlib.compress(show.encode())
    objects = (
        b"<</Type/Catalog/Pages 2 0 R>>", b"<</Type/Pages/Kids[%b]/Count %d>>" % (kids, pages),
        b"<</Type/Page/Parent 2 0 R/MediaBox[0 0 400 200]/Contents 4 0 R/Resources<</Font<</F1 5 0 "
        b"R>>>>>>",
        b"<</Filter/FlateDecode/Length %d>>stream\n%b\nendstream" % (len(stream), stream),
        b"<</Type/Font/Subtype/Type1/BaseFont/Helvetica>>",
    )  # fmt: skip
    body = b"".join(
        b"%d 0 obj%bendobj\n" % (number, text) for number, text in enumerate(objects, 1)
    )
    return b"%PDF-1.4\n" + body + b"trailer<</Root 1 0 R>>"


def slow_pdf() -> bytes:
    """Hundreds of pages, each with a hundred thousand lines and no text: minutes of work."""
    return long_pdf(1999, "0 0 m 9 9 l S " * 100_000)


def locked_pdf() -> bytes:
    """Says that it is encrypted, by a key that nobody has."""
    secret = "<" + "ab" * 32 + ">"
    lock = f"8 0 obj<</Filter/Standard/V 2/R 3/Length 128/P -4/O {secret}/U {secret}>>endobj\n".encode()
    plain = make_pdf("A title", "A secret", URL)
    end = b"trailer<</Root 1 0 R/Encrypt 8 0 R/ID[<00><00>]>>\n"
    return plain[: plain.index(b"xref\n")] + lock + end


GOOD = {
    "pdf": make_pdf("A title", "Some words", URL),
    "printed": PRINTED,
    "docx": make_docx("A title", "Some words", URL),
    "xlsx": xlsx(),
    "pptx": pptx(),
    "odt": odt(),
    "ods": ods(),
    "rtf": rtf(),
    "doc": compound.doc(),
    "xls": compound.xls(),
    "ppt": compound.ppt(),
}
