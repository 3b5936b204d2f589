"""Real documents, as small as they can be: a PDF and a Word file, a sentence and a link each."""

from __future__ import annotations

import io
import zipfile

WORD = "http://schemas.openxmlformats.org/wordprocessingml/2006/main"
RELATION = "http://schemas.openxmlformats.org/officeDocument/2006/relationships"
PACKAGE = "http://schemas.openxmlformats.org/package/2006"


def make_pdf(title: str, text: str, url: str) -> bytes:
    """A PDF of one page; the link is an annotation over the text."""
    show = f"BT /F1 18 Tf 40 100 Td ({text}) Tj ET"
    objects = (
        "<</Type/Catalog/Pages 2 0 R/Lang(en)>>",
        "<</Type/Pages/Kids[3 0 R]/Count 1>>",
        "<</Type/Page/Parent 2 0 R/MediaBox[0 0 600 200]/Contents 4 0 R/Resources<</Font<</F1 5 0 "
        "R>>>>/Annots[6 0 R]>>",
        f"<</Length {len(show)}>>stream\n{show}\nendstream",
        "<</Type/Font/Subtype/Type1/BaseFont/Helvetica>>",
        f"<</Type/Annot/Subtype/Link/Rect[30 90 590 130]/A<</S/URI/URI({url})>>>>",
        f"<</Title({title})>>",
    )
    body = "%PDF-1.4\n"
    offsets = []
    for number, source in enumerate(objects, 1):
        offsets.append(len(body))
        body += f"{number} 0 obj{source}endobj\n"
    table = "".join(f"{offset:010} 00000 n \n" for offset in offsets)
    end = (
        f"xref\n0 {len(objects) + 1}\n0000000000 65535 f \n{table}trailer<</Root 1 0 R/Info 7 0 "
        f"R/Size {len(objects) + 1}>>\n"
    )
    return f"{body}{end}startxref\n{len(body)}\n%%EOF\n".encode("latin-1")


def make_docx(title: str, text: str, url: str) -> bytes:
    """A Word file of one paragraph with a link in it."""
    link = f'<w:hyperlink r:id="rId1"><w:r><w:t>{text}</w:t></w:r></w:hyperlink>'
    main = "application/vnd.openxmlformats-officedocument.wordprocessingml.document.main+xml"
    parts = {
        "[Content_Types].xml": f'<Types xmlns="{PACKAGE}/content-types"><Default Extension="rels" '
        'ContentType="application/'
        'vnd.openxmlformats-package.relationships+xml"/><Default Extension="xml" '
        'ContentType="application/xml"/>'
        f'<Override PartName="/word/document.xml" ContentType="{main}"/></Types>',
        "_rels/.rels": f'<Relationships xmlns="{PACKAGE}/relationships"><Relationship Id="rId1" '
        f'Type="{RELATION}/officeDocument" '
        'Target="word/document.xml"/></Relationships>',
        "docProps/core.xml": f'<c:coreProperties xmlns:c="{PACKAGE}/metadata/core-properties" '
        f'xmlns:dc="http://purl.org/dc/elements/1.1/"><dc:title>{title}</dc:title>'
        "<dc:language>en</dc:language></c:coreProperties>",
        "word/document.xml": f'<w:document xmlns:w="{WORD}" '
        f'xmlns:r="{RELATION}"><w:body><w:p>{link}</w:p></w:body></w:document>',
        "word/_rels/document.xml.rels": f'<Relationships xmlns="{PACKAGE}/relationships">'
        f'<Relationship Id="rId1" '
        f'Type="{RELATION}/hyperlink" Target="{url}" TargetMode="External"/></Relationships>',
    }
    return make_zip(parts)


def make_zip(parts: dict[str, str]) -> bytes:
    """A zip, the same bytes whenever it is made."""
    file = io.BytesIO()
    with zipfile.ZipFile(file, "w") as archive:
        for name, text in parts.items():
            archive.writestr(zipfile.ZipInfo(name), text, zipfile.ZIP_DEFLATED)
    return file.getvalue()
