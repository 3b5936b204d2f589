"""Articles of single pages, taken as a crawl takes them: by its processes, within its limits."""

from __future__ import annotations

from dataclasses import replace

from crawlproj.cli.page_source import SourcePage
from crawlproj.content.article_process import ArticleReader, ArticleReadError
from crawlproj.content.articles import ArticleFields
from crawlproj.content.document import Document
from crawlproj.content.language import NOT_JUDGED, UNDETERMINED, Sample
from crawlproj.content.language_process import LanguageReader
from crawlproj.content.packed_text import stored_form
from crawlproj.duplicates.marks import make_page_text
from crawlproj.urls.rules import SiteRules


class PageReader:
    """For one thread. To be closed."""

    def __init__(self) -> None:
        self._articles = ArticleReader()
        self._languages = LanguageReader()

    def close(self) -> None:
        self._articles.close()
        self._languages.close()

    def read_article(self, page: SourcePage, site: SiteRules | None) -> ArticleFields:
        """The article of a page; without any field if a crawl takes none from it, and why is an
        alarm.
        """
        selectors = site.fields if site is not None else None
        try:
            return self._articles.read(page.body, page.url, page.charset, selectors)
        except ArticleReadError as error:
            return ArticleFields(alarms=(f"a crawl takes no article from this page: {error}",))

    def with_found_language(self, fields: ArticleFields, document: Document) -> ArticleFields:
        """The same with the language that the page's text is found to be in, where that can be
        told: in an item it stands in place of the declared one.
        """
        text = make_page_text(document, stored_form(document.blocks), "html", with_sample=True)
        (found,) = self._languages.detect([Sample(text.sample, document.language)])
        if found in (NOT_JUDGED, UNDETERMINED):
            return fields
        return replace(fields, language=found, origins={**fields.origins, "language": "the text"})
