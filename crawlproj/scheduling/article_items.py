"""Items of articles: as they were just taken from a page, or as they are stored."""

from __future__ import annotations

from collections.abc import Sequence

from crawlproj.articles.store import StoredArticle
from crawlproj.content.articles import ArticleFields
from crawlproj.content.language import NOT_JUDGED, UNDETERMINED
from crawlproj.items import Article


def item_of_fields(url: str, fields: ArticleFields, site: str, language: str = "") -> Article:
    """The item of an article that is not stored yet. `language`: what its text was found to be."""
    return Article(
        url,
        fields.title,
        fields.text,
        date=fields.date,
        modified=fields.modified,
        authors=list(fields.authors),
        language=_best_language(language, fields.language),
        section=fields.section,
        keywords=list(fields.keywords),
        place=fields.place,
        image=fields.image,
        canonical=fields.canonical,
        site=site,
    )


def item_of_stored(
    url: str, stored: StoredArticle, language: str, addresses: Sequence[str] = ()
) -> Article:
    """The item of a stored article."""
    fields = stored.fields
    return Article(
        url,
        stored.title,
        stored.text,
        date=stored.date,
        modified=stored.modified,
        authors=list(fields.get("authors", ())),
        language=_best_language(language, fields.get("language")),
        section=fields.get("section"),
        keywords=list(fields.get("keywords", ())),
        place=fields.get("place"),
        image=fields.get("image"),
        canonical=fields.get("canonical"),
        site=stored.site,
        labels=list(fields.get("labels", ())),
        version=stored.version,
        addresses=list(addresses),
    )


def _best_language(found: str, declared: str | None) -> str | None:
    """What the text was found to be in; if nobody can say, what the page declares."""
    if found in (NOT_JUDGED, UNDETERMINED):
        return declared
    return found
