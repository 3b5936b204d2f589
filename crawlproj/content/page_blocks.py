"""The blocks of a page as they are compared with those of other captures: keys, not texts.

Of a page only its content is compared: what stands in main or article, and what stands outside of
all landmarks unless it is mostly links. All of it is made by a few calls for the whole page, since
every page that is read pays for it.
"""

from __future__ import annotations

import re
import struct
from collections.abc import Iterable, Sequence
from hashlib import blake2b
from typing import Final, NamedTuple
from zlib import crc32

from crawlproj.content.document import INVISIBLE, JOINERS, Block, remove_characters
from crawlproj.content.html_elements import CLOSING_ROLES, CLOSING_TAGS

MAX_LINK_SHARE: Final = 0.5
"""Outside of main and article, a block with more of its text in links is no content."""
MAX_PATHS: Final = 20_000
_UNSEEN: Final = JOINERS + INVISIBLE
_MASK: Final = 0xFFFFFFFF
_CLOSING: Final = re.compile(
    rf"(?:^|/)(?:{'|'.join(CLOSING_TAGS)})(?:[./]|$)|@(?:{'|'.join(CLOSING_ROLES)})(?:/|$)"
)
_NUMBER: Final = re.compile(r"\d{2,}")
_TOKEN: Final = re.compile(
    rb"(?<![0-9a-z])(?:(?=[a-f]*[0-9])(?=[0-9]*[a-f])[0-9a-f]{16,}"
    rb"|[0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12})(?![0-9a-z])"
)
"""What only programs write: numbers of requests, sessions and the like, another one each time."""
_HEX: Final = bytes(ord("x") if byte in b"0123456789abcdef-" else byte for byte in range(256))
_LEAST_TOKEN: Final = b"x" * 16
# Letters are counted in UTF-8: each has one first byte. The signs of U+0080 to U+00BF begin with
# C2, those of U+2000 to U+2FFF (quotes, dashes, bullets, arrows) with E2, emoji with F0.
_NO_LETTERS: Final = bytes(
    byte
    for byte in range(256)
    if byte != 10
    and not (byte < 128 and chr(byte).isalpha())
    and (byte < 0xC0 or byte in (0xC2, 0xE2, 0xF0))
)
_closed_paths: Final[dict[str, bool]] = {}
_path_hashes: Final[dict[str, int]] = {}


class PageBlocks(NamedTuple):
    """The content of a page. The lists go together, one entry per block.

    A text that stands there several times has a key for each time, so that the keys are a set; they
    are the same in every process.
    """

    keys: list[int]
    letters: list[int]
    texts: list[str]
    paths: list[str]
    places: list[int]
    """The hashes of the paths."""
    digest: int
    """Equal for the same texts in any order."""
    structure: int
    """Equal for the same texts in the same order in the same elements."""
    boilerplate: int
    """Equal for the same texts outside of the content."""


def find_blocks(blocks: Iterable[Block]) -> PageBlocks:
    """Find the content of a page that was parsed."""
    texts: list[str] = []
    paths: list[str] = []
    others: list[str] = []
    closed_paths = _closed_paths
    for text, path, main, share in blocks:
        if not main:
            closed = closed_paths.get(path)
            if closed is None:
                closed = is_closed(path)
            if closed or share > MAX_LINK_SHARE:
                others.append(text)
                continue
        texts.append(text)
        paths.append(path)
    keys: list[int] = []
    letters: list[int] = []
    folded = b""
    if texts:
        folded = _fold(texts)
        if folded.count(b"\n") != len(texts) - 1:
            folded = _fold([" ".join(text.split()) for text in texts])
        if _LEAST_TOKEN in folded.translate(_HEX):
            folded = _TOKEN.sub(b"0", folded)
        keys = list(map(crc32, folded.split(b"\n")))
        letters = list(map(len, folded.translate(None, _NO_LETTERS).split(b"\n")))
        if len(set(keys)) < len(keys):
            keys = _number_repeated(keys)
    known = _path_hashes.get
    places = [known(path) or hash_path(path) for path in paths]
    return PageBlocks(
        keys,
        letters,
        texts,
        paths,
        places,
        digest=digest_keys(keys),
        structure=crc32(struct.pack(f"<{len(places)}I", *places), crc32(folded)),
        boilerplate=crc32(_fold(others)),
    )


def is_closed(path: str) -> bool:
    """Whether a block that is in no main or article stands in navigation, a footer or the like."""
    if len(_closed_paths) >= MAX_PATHS:
        _closed_paths.clear()
    closed = _CLOSING.search(path) is not None
    _closed_paths[path] = closed
    return closed


def hash_path(path: str) -> int:
    """A number of 32 bits for a path, the same in every process; its upper half is that of the
    path's end. Numbers in class names do not count: they may be other ones at each visit.
    """
    found = _path_hashes.get(path)
    if found is None:
        if len(_path_hashes) >= MAX_PATHS:
            _path_hashes.clear()
        plain = _NUMBER.sub("0", path)
        found = _hash_short(_end_of(plain)) << 16 | _hash_short(plain)
        _path_hashes[path] = found
    return found


def _end_of(path: str) -> str:
    """From the innermost element that has a class on; the whole path if none has."""
    start = path.rfind("/", 0, max(path.rfind("."), 0)) + 1
    return path[start:] if "." in path else path


def path_end(hashed: int) -> int:
    """The half of a path's hash that pages of different templates share: what the innermost element
    that has a class, and all inside it, are.
    """
    return hashed >> 16


def _hash_short(text: str) -> int:
    hashed = crc32(text.encode("utf-8", "replace"))
    return (hashed ^ hashed >> 16) & 0xFFFF


def digest_keys(keys: Iterable[int]) -> int:
    """A number of 64 bits for a set of keys."""
    ordered = sorted(keys)
    packed = struct.pack(f"<{len(ordered)}I", *ordered)
    return int.from_bytes(blake2b(packed, digest_size=8).digest(), "little")


def _fold(texts: Sequence[str]) -> bytes:
    """The texts as they are compared, a line for each; a block has no line ends."""
    folded = [text.lower() if text.isascii() else _fold_foreign(text) for text in texts]
    return "\n".join(folded).encode("utf-8", "replace")


def _fold_foreign(text: str) -> str:
    folded = text.casefold()
    seen = remove_characters(folded, _UNSEEN)
    if len(seen) < len(folded):
        return " ".join(seen.split())
    return seen


def _number_repeated(keys: Sequence[int]) -> list[int]:
    """The keys; that of a second, third... block with the same text depends on its number, too."""
    counts: dict[int, int] = {}
    numbered: list[int] = []
    for key in keys:
        count = counts.get(key, 0)
        counts[key] = count + 1
        if count:
            key = (key * 0x9E3779B1 + count * 0x85EBCA6B + 1) & _MASK
        numbered.append(key)
    return numbered
