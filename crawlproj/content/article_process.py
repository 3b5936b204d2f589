"""TEMPORARY."""

from crawlproj.content.articles import ArticleFields, extract_article


class ArticleReadError(Exception): ...


class ArticleReader:
    def read(
        self, body: bytes, url: str, charset: str, selectors: dict[str, str] | None
    ) -> ArticleFields:
        return extract_article(body, url, charset=charset, selectors=selectors)

    def close_if_idle(self, idle_s: float) -> None: ...
    def close(self) -> None: ...
