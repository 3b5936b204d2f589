"""What is made of a page's text before it is stored: the text itself, and the numbers by which the
page is compared with others.

Runs on the event loop, or for a long text in a thread of its own; the database is not asked.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from functools import lru_cache
from hashlib import blake2b
from typing import TYPE_CHECKING, Final

from crawlproj.content.document import Document
from crawlproj.content.documents import formats as documents
from crawlproj.content.language import choose_sample
from crawlproj.content.packed_text import (
    TextBlock,
    main_blocks,
    pack_document,
    visible_blocks,
)
from crawlproj.duplicates.rules import DuplicateRules
from crawlproj.frontier.base import DuplicateMarks, PageText
from crawlproj.urls.domains import registered_domain

if TYPE_CHECKING:
    from crawlproj.duplicates.compare import JudgedText
    from crawlproj.duplicates.minhash import Signer

WITHDRAWN: Final = DuplicateMarks(0, withdrawn=True)
"""Of a page that is compared with nothing: it says noindex, or is empty."""
READER_VERSIONS: Final = {"html": 1, "text": 1} | documents.READER_VERSIONS
"""What reads each kind of page, and its version: higher when it gives another text."""
SAMPLED_BLOCKS: Final = 3
"""A text's language is found by some of its longest blocks."""
_WORD_CHARACTERS: Final = re.compile(
    "[\u0e00-\u0eff\u1000-\u109f\u1780-\u17ff\u3040-\u30ff\u3400-\u4dbf\u4e00-\u9fff\uf900-\ufaff]"
)
"""Letters of scripts without spaces: each counts as a word."""


def count_words(text: str) -> int:
    """How many words a text has."""
    words = len(text.split())
    if not text.isascii():
        words += len(_WORD_CHARACTERS.findall(text))
    return words


def make_page_text(
    document: Document, blocks: Sequence[TextBlock], kind: str, *, with_sample: bool
) -> PageText:
    """The text of a page that was just read, as it is stored; with a sample of it if its language
    is to be found. `blocks`: those of the page in their stored form.
    """
    sample = ""
    if with_sample:
        texts = sorted([block.text for block in main_blocks(blocks)], key=len, reverse=True)
        sample = choose_sample(texts[:SAMPLED_BLOCKS])
    reader = document.reader or kind
    return PageText(
        pack_document(document),
        count_words(document.text),
        reader,
        READER_VERSIONS.get(reader, 0),
        sample,
    )


class PageMarker:
    """Makes the marks of pages of one crawl. `crawl` is its number in the database."""

    def __init__(self, rules: DuplicateRules, crawl: int) -> None:
        self.rules = rules
        self.crawl: Final = crawl
        self._signer: Signer | None = None
        if rules.near:
            from crawlproj.duplicates.minhash import Signer

            self._signer = Signer(num_perm=rules.num_perm, shingle=rules.shingle)

    @property
    def lock_number(self) -> int:
        """What two commits that may find the same original have in common."""
        if self.rules.scope == "all":
            return 0
        return self.crawl

    @property
    def scheme(self) -> str:
        """How the marks are made: others can't be compared with them."""
        signature = "none"
        if self._signer is not None:
            signature = self._signer.scheme
        return f"scope={self.rules.scope} near={signature}"

    def mark_blocks(
        self,
        blocks: Sequence[TextBlock],
        body_digest: bytes,
        text_digest: bytes | None,
        host: str,
        *,
        first: bool,
    ) -> DuplicateMarks:
        """The marks of a page with these blocks in their stored form, read now or long ago. Without
        a text digest it is judged by its bytes.
        """
        scope = self._scope_of(host)
        runs = visible_blocks(blocks)
        text = None
        bands = None
        paragraphs: tuple[tuple[int, int], ...] = ()
        if runs and text_digest is not None:
            text = _mixed_digest(text_digest, scope)
            if self._signer is not None or self.rules.paragraphs:
                from crawlproj.duplicates.compare import judged_text

                judged = judged_text(runs)
            if self._signer is not None:
                bands = self._signer.bands(judged, scope)
            if self.rules.paragraphs:
                paragraphs = _mixed_paragraphs(judged, scope)
        return DuplicateMarks(
            _mixed_digest(body_digest, scope), text, bands, paragraphs=paragraphs, first=first
        )

    def mark_paragraphs(
        self, blocks: Sequence[TextBlock], host: str
    ) -> tuple[tuple[int, int], ...]:
        """The marks of the long paragraphs of a stored page: hash and length of each."""
        from crawlproj.duplicates.compare import judged_text

        return _mixed_paragraphs(judged_text(visible_blocks(blocks)), self._scope_of(host))

    def _scope_of(self, host: str) -> int:
        """A number that is mixed into all marks, so that only pages of one scope can meet."""
        if self.rules.scope == "all":
            return 0
        if self.rules.scope == "crawl":
            return self.crawl
        return _site_number(self.crawl, registered_domain(host))


def _mixed_paragraphs(text: JudgedText, scope: int) -> tuple[tuple[int, int], ...]:
    from crawlproj.duplicates.paragraphs import mix_scopes, paragraphs_in

    found = paragraphs_in(text)
    hashes = mix_scopes([paragraph.hash for paragraph in found], scope)
    return tuple(zip(hashes, [paragraph.length for paragraph in found], strict=True))


@lru_cache(maxsize=1000)
def _site_number(crawl: int, domain: str) -> int:
    return _number(blake2b(f"{crawl} {domain}".encode("utf-8", "replace"), digest_size=8).digest())


def _mixed_digest(digest: bytes, scope: int) -> int:
    return _number(blake2b(digest + scope.to_bytes(8, "big", signed=True), digest_size=8).digest())


def _number(digest: bytes) -> int:
    return int.from_bytes(digest, "big", signed=True)
