"""Special collections about spelling: charsets, `<base>`, variants of a URL, links outside of
`<a>`, documents.
"""

from __future__ import annotations

from collections.abc import Iterable
from functools import partial

from crawlproj.demo import files, render
from crawlproj.demo.model import DemoLink, DemoPage
from crawlproj.demo.site import LONG_AGO, Site, fixed_page

DOCX = "application/vnd.openxmlformats-officedocument.wordprocessingml.document"
RUSSIAN = (
    "Утром над рекой стоял туман, и рыбаки долго ждали парома.",
    "Городской совет отремонтировал старый мост и открыл новую библиотеку.",
    "После концерта музыканты вспоминали, как строили театр.",
)


def add_charsets(site: Site) -> None:
    """UTF-16 and UTF-8 with a BOM, windows-1251 by meta element, Latin-1 by header, `<base>`."""

    def add_page(name: str, text: Iterable[str], meta: str, codec: str, header: str) -> None:
        label = "Vor, après"
        if codec != "latin-1":
            label += ", дальше"
        link = site.make_link(f"/text/from-{name}.html", label)
        html = f"<!DOCTYPE html><html><head>{meta}<title>{name}</title></head><body><h1>{name}</h1>"
        html += f"{render.paragraphs_html(text)}<p>{render.link_html(link)}</p></body></html>\n"
        body = html.encode(codec, "xmlcharrefreplace")
        site.extra.pages[f"/text/{name}.html"] = fixed_page(
            DemoPage("page", LONG_AGO, 0, links=(link,), body=lambda: body, type=header)
        )
        site.extra.pages[f"/text/from-{name}.html"] = fixed_page(
            site.plain_page(f"Linked from {name}")
        )
        site.extra.entries.append(site.make_link(f"/text/{name}.html", f"In {name}"))

    western = ("Über den Dächern läutete es zwölf.", "Le garçon a déjà mangé la crème brûlée.")
    add_page("utf-16", RUSSIAN, "", "utf-16", "text/html; charset=utf-16")
    add_page("windows-1251", RUSSIAN, '<meta charset="windows-1251">', "cp1251", "text/html")
    add_page("latin-1", western, "", "latin-1", "text/html; charset=iso-8859-1")
    add_page("utf-8-bom", RUSSIAN, "", "utf-8-sig", "text/html")
    _base(site)


def _base(site: Site) -> None:
    link = site.make_link("/text/folder/page.html", "Relative to the base", href="page.html")
    html = (
        "<!DOCTYPE html><html><head><base "
        f'href="/text/folder/"><title>Base</title></head><body>{render.link_html(link)}'
    )
    text = render.paragraphs_html(["A page whose links start elsewhere."])
    body = f"{html}{text}</body></html>\n".encode()
    site.extra.pages["/text/base.html"] = fixed_page(
        DemoPage("page", LONG_AGO, 0, links=(link,), body=lambda: body)
    )
    site.extra.pages["/text/folder/page.html"] = fixed_page(site.plain_page("In the folder"))
    site.extra.entries.append(site.make_link("/text/base.html", "With a base"))


def add_url_variants(site: Site) -> None:
    """The same page under many spellings: tracking, session, fragment, dots, upper case."""
    item = "/shop/item.html"
    offer = "/shop/offer.html?colour=red&size=2"
    site.extra.pages[item] = fixed_page(site.plain_page("An item"))
    site.extra.pages[offer] = fixed_page(site.plain_page("An offer"))
    for tail in (
        "",
        "?utm_source=front&utm_medium=box",
        "?fbclid=Iw0x",
        "?PHPSESSID=0123456789abcdef",
        "#reviews",
    ):
        site.extra.entries.append(site.make_link(item, "The item", href=item + tail))
    site.extra.entries.append(site.make_link(item, "The item", href="/news/../shop/./item.html"))
    shouted = site.world.url(site.spec.name, item).replace(site.spec.host, site.spec.host.upper())
    site.extra.entries.append(site.make_link(item, "The item", href=shouted))
    for query in ("colour=red&size=2", "size=2&colour=red", "size=2&gclid=x1&colour=red"):
        site.extra.entries.append(
            site.make_link(offer, "The offer", href=f"/shop/offer.html?{query}")
        )


def add_script_links(site: Site) -> None:
    """Links in onclick, in script text (whole and as a path), in an image map, in a frame."""
    full = site.world.url(site.spec.name, "/odd/script-url.html")
    odd = (
        site.make_link("/odd/onclick.html", "Press", "onclick"),
        site.make_link("/odd/script-path.html", "path", "script"),
        site.make_link("/odd/script-url.html", "url", "script", href=full),
        site.make_link("/odd/area.html", "Map", "area"),
        site.make_link("/odd/frame.html", "Frame", "iframe"),
    )
    site.extra.entries += odd
    site.extra.pages |= {
        path: fixed_page(site.plain_page(f"Found at {path}")) for path in map(_path, odd)
    }


def _path(link: DemoLink) -> str:
    return "/" + link.target.split("/", 3)[3]


def add_documents(site: Site) -> None:
    """A plain text, a PDF and a Word file, each the only one that links a certain page."""
    kinds = {"report.pdf": "application/pdf", "minutes.docx": DOCX, "hours.txt": "text/plain"}
    links = {name: site.make_link(f"/files/from-{name}.html", name) for name in kinds}
    bodies = {
        "report.pdf": files.make_pdf(
            "The annual report", "The annual report of the demo web", links["report.pdf"].target
        ),
        "minutes.docx": files.make_docx(
            "The minutes", "Minutes of the last meeting", links["minutes.docx"].target
        ),
        "hours.txt": (
            f"Open every day from nine to five, see {links['hours.txt'].target}.\n".encode()
        ),
    }
    for name, kind in kinds.items():
        page = DemoPage(
            "document",
            LONG_AGO,
            0,
            links=(links[name],),
            body=partial(bytes, bodies[name]),
            type=kind,
        )
        site.extra.pages[f"/files/{name}"] = fixed_page(page)
        site.extra.pages[f"/files/from-{name}.html"] = fixed_page(
            site.plain_page(f"Linked from {name}")
        )
        site.extra.entries.append(site.make_link(f"/files/{name}", f"/files/{name}"))
