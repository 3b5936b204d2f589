"""YAML that people write, read so that each mistake can be told with its line and column.

The nodes of a file are walked, and no Python objects are made of them by their tags: a text is what
stands there, so that `no` is Norway and 2024 a name.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Sequence
from difflib import get_close_matches
from pathlib import Path
from typing import Any, Final, NamedTuple

import yaml  # type: ignore[import-untyped]

from crawlproj.errors import ConfigError, MistakesError

MAX_BYTES = 20_000_000
MAX_DEPTH = 20
"""So deep may lists and mappings be nested. Not less than any form needs; the parser in C takes a
stack frame for each.
"""
MAX_NODES = 1_000_000
"""So many nodes are looked at: aliases of aliases can make billions of a few lines."""
MAX_SHOWN = 20
"""So many mistakes are shown."""
NULL: Final = "tag:yaml.org,2002:null"
_PLAIN_TAGS: Final = frozenset(
    f"tag:yaml.org,2002:{name}"
    for name in ("str", "int", "float", "bool", "null", "timestamp", "merge", "value")
)
_LOADER = getattr(yaml, "CSafeLoader", yaml.SafeLoader)
_UNREADABLE = re.compile("[^\t\n\r\x20-\x7e\x85\xa0-\ud7ff\ue000-\ufffd\U00010000-\U0010ffff]")
_HINTS: Final = (
    ("unknown escape", "in double quotes a backslash needs another one: use single quotes"),
    ("mapping values are not allowed", "put quotes around a text that has a colon and a blank"),
    ("undefined alias", "there is no such anchor before it; quote a text that begins with *"),
    ("another document", "a file holds one document: remove the line ---"),
)
_ODD_STARTS: Final = {
    "\t": "a tab can't indent: use blanks",
    "@": "put quotes around a text that begins with @",
    "`": "put quotes around a text that begins with a back-tick",
    "%": "put quotes around a text that begins with %",
}


class Entry(NamedTuple):
    """A key of a mapping, and what it stands for."""

    key: Any
    value: Any


class Mistakes:
    """The mistakes of one file."""

    def __init__(self, source: str) -> None:
        self._source = source
        self._found: list[tuple[int, int, str]] = []

    def add(self, node: Any, text: str) -> None:
        """Note a mistake where a node begins."""
        self.add_at(node.start_mark.line, node.start_mark.column, text)

    def add_at(self, line: int, column: int, text: str) -> None:
        """Note a mistake; lines and columns are counted from 0 here, and from 1 for people."""
        self._found.append((line + 1, column + 1, text))

    def raise_any(self) -> None:
        """Raise MistakesError if there are any."""
        if not self._found:
            return
        found = sorted(dict.fromkeys(self._found))
        lines = [
            f"{self._source}, line {line}, column {column}: {text}"
            for line, column, text in found[:MAX_SHOWN]
        ]
        if len(found) > MAX_SHOWN:
            lines.append(f"{self._source}: {len(found) - MAX_SHOWN:,} more mistakes")
        raise MistakesError(lines)


def read_text(path: Path, what: str) -> str:
    """The text of a file; `what` it is stands before a mistake."""
    try:
        with path.open("rb") as file:
            data = file.read(MAX_BYTES + 1)
    except (OSError, ValueError) as error:
        why = getattr(error, "strerror", None) or error
        raise ConfigError(f"{what} {str(path)!r} can't be read: {why}") from None
    if len(data) > MAX_BYTES:
        raise ConfigError(f"{what} {str(path)!r} has more than {MAX_BYTES:,} bytes")
    try:
        return data.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        before = data[: error.start].decode("utf-8", "replace")
        mistakes = Mistakes(str(path))
        mistakes.add_at(*_place_after(before), "the file is not UTF-8 text")
        mistakes.raise_any()
        raise


def compose_yaml(text: str, source: str) -> Any:
    """The root node of a text, None if there is none. MistakesError if it is no YAML."""
    mistakes = Mistakes(source)
    unreadable = _UNREADABLE.search(text)
    if unreadable is not None:
        place = _place_after(text[: unreadable.start()])
        mistakes.add_at(*place, f"a character that no text has: {unreadable[0]!a}")
        mistakes.raise_any()
    try:
        _check_depth(text, mistakes)
        return yaml.compose(text, Loader=_LOADER)
    except yaml.MarkedYAMLError as error:
        mark = error.problem_mark or error.context_mark
        mistakes.add_at(mark.line, mark.column, f"this is not YAML: {_problem(text, error, mark)}")
    except yaml.YAMLError as error:
        mistakes.add_at(0, 0, f"this is not YAML: {' '.join(str(error).split())}")
    mistakes.raise_any()
    return None


def _place_after(text: str) -> tuple[int, int]:
    return text.count("\n"), len(text) - text.rfind("\n") - 1


def _check_depth(text: str, mistakes: Mistakes) -> None:
    depth = 0
    for event in yaml.parse(text, Loader=_LOADER):
        if isinstance(event, yaml.CollectionStartEvent):
            depth += 1
        elif isinstance(event, yaml.CollectionEndEvent):
            depth -= 1
        if depth > MAX_DEPTH:
            mistakes.add(event, f"nested more than {MAX_DEPTH} deep")
            mistakes.raise_any()


def _problem(text: str, error: Any, mark: Any) -> str:
    problem = str(error.problem or error.context)
    for start, hint in _HINTS:
        if start in problem:
            return hint
    lines = text.split("\n", mark.line + 1)
    letter = ""
    if mark.line < len(lines):
        letter = lines[mark.line][mark.column : mark.column + 1]
    if "cannot start any token" in problem and letter in _ODD_STARTS:
        return _ODD_STARTS[letter]
    if error.context and error.context_mark is not None:
        return f"{problem}, {error.context} that begins in line {error.context_mark.line + 1}"
    return problem


class NodeReader:
    """Reads nodes as what they must be. A node that is something else is a mistake, and gives None
    or nothing.
    """

    def __init__(self, mistakes: Mistakes) -> None:
        self.mistakes = mistakes
        self._looked_at = 0

    def read_mapping(self, node: Any, what: str, keys: Sequence[str] = ()) -> dict[str, Entry]:
        """The entries of a mapping by their keys; only `keys` are allowed, if there are any."""
        self._count(node)
        if not isinstance(node, yaml.MappingNode):
            self.mistakes.add(node, f"{what} must be a mapping, lines of `key: value`")
            return {}
        if not node.value:
            self.mistakes.add(node, f"{what} is empty")
        entries: dict[str, Entry] = {}
        for key_node, value in node.value:
            key = self.read_text(key_node, f"a key of {what}")
            if key is None:
                continue
            if key in entries:
                line = entries[key].key.start_mark.line + 1
                self.mistakes.add(key_node, f"{key} is given twice, before in line {line}")
            elif keys and key not in keys:
                self.mistakes.add(key_node, f"unknown key {key[:100]!r}{nearest(key, keys)}")
            else:
                entries[key] = Entry(key_node, value)
        return entries

    def read_list(self, node: Any, what: str, example: str) -> list[Any]:
        """The nodes of a list."""
        self._count(node)
        if not isinstance(node, yaml.SequenceNode):
            self.mistakes.add(node, f"{what} must be a list such as {example}")
            return []
        return list(node.value)

    def is_text(self, node: Any) -> bool:
        return isinstance(node, yaml.ScalarNode)

    def is_empty_list(self, node: Any) -> bool:
        return isinstance(node, yaml.SequenceNode) and not node.value

    def read_text(self, node: Any, what: str) -> str | None:
        """What stands there, whatever type YAML would make of it."""
        self._count(node)
        if not isinstance(node, yaml.ScalarNode):
            self.mistakes.add(node, f"{what} must be a text")
            return None
        if node.tag not in _PLAIN_TAGS:
            self.mistakes.add(node, f"{what} has a tag, {node.tag[:100]!r}: none is known here")
            return None
        text = str(node.value)
        if node.tag == NULL or not text.strip():
            self.mistakes.add(node, f"{what} is empty")
            return None
        return text

    def read_texts(self, node: Any, what: str, example: str) -> list[tuple[Any, str]]:
        """The texts of a list, each with its node."""
        items = self.read_list(node, what, example)
        texts = [(item, self.read_text(item, f"an entry of {what}")) for item in items]
        return [(item, text) for item, text in texts if text is not None]

    def read_checked(self, node: Any, check: Callable[[], Any]) -> Any:
        """What `check` gives; its ConfigError is a mistake of the node."""
        try:
            return check()
        except ConfigError as error:
            self.mistakes.add(node, str(error))
            return None

    def _count(self, node: Any) -> None:
        self._looked_at += 1
        if self._looked_at > MAX_NODES:
            self.mistakes.add(node, f"more than {MAX_NODES:,} nodes: too many aliases (*name)")
            self.mistakes.raise_any()


def nearest(word: str, known: Iterable[str]) -> str:
    """What follows "unknown key ...": the word that was meant, or all that there are."""
    known = list(known)
    close = get_close_matches(word.lower(), known, n=1, cutoff=0.6)
    if close:
        return f": did you mean {close[0]}?"
    shown = ", ".join(known[:MAX_SHOWN])
    if len(known) > MAX_SHOWN:
        shown += f" and {len(known) - MAX_SHOWN:,} more"
    return f"; there are: {shown}"
