"""How the time of a call grows with its input, and inputs that make a pattern slow.

Attacks on a pattern are made of its own parts: for each thing that it repeats, what comes before it
once, and what is repeated very often, with an end that fits nowhere.
"""

from __future__ import annotations

import ast
import importlib
import re
import time
from collections.abc import Callable, Iterable, Iterator
from pathlib import Path
from re import _constants as codes  # type: ignore[attr-defined]
from re import _parser  # type: ignore[attr-defined]
from typing import Any, NamedTuple

LENGTH = 4_000
SMALL = (12, 18, 24, 32, 48, 64, 200, 1_000)
"""Lengths that are tried first: an exponential time shows there, and would not end later."""
QUICK_S = 0.002
"""What takes no longer is not looked at further; 4,000 characters take a linear search .05 ms."""
LINEAR = 2.9
"""Twice the input may take so many times as long: 2 is linear, 4 quadratic."""
METHODS = frozenset(("match", "search", "fullmatch", "sub", "subn", "split", "findall", "finditer"))
ENDS = ("", "\0", '"', "\n")


class Attack(NamedTuple):
    """An input of any length: `before`, then `pumped` again and again, then `after`."""

    before: str
    pumped: str
    after: str = ""

    def text(self, length: int) -> str:
        return self.before + self.pumped * (length // len(self.pumped) + 1) + self.after


def grows_too_fast(call: Callable[[str], object], attack: Attack, length: int = LENGTH) -> str:
    """What is wrong, in words; empty if the time of the call is linear in this input."""
    for size in (*SMALL, length):
        if _seconds(call, attack.text(size)) < QUICK_S:
            continue
        for _ in range(3):  # other processes may have disturbed it
            half_s = min(_seconds(call, attack.text(size // 2)) for _ in range(3))
            whole_s = _seconds(call, attack.text(size))
            if whole_s < max(QUICK_S, LINEAR * half_s):
                break
        else:
            return f"{size // 2} characters {half_s * 1e3:.2f} ms, {size} {whole_s * 1e3:.2f} ms"
    return ""


def _seconds(call: Callable[[str], object], text: str) -> float:
    began = time.process_time()
    call(text)
    return time.process_time() - began


# The patterns of a project


class FoundPattern(NamedTuple):
    """A pattern in the source, and how it is used there."""

    place: str
    pattern: re.Pattern[Any]
    method: str

    def call(self, text: str) -> None:
        subject: Any = text
        empty: Any = ""
        if isinstance(self.pattern.pattern, bytes):
            subject = text.encode("latin-1", "replace")
            empty = b""
        method = getattr(self.pattern, self.method)
        if self.method in ("sub", "subn"):
            method(empty, subject)
        elif self.method == "finditer":
            list(method(subject))
        else:
            method(subject)


def find_patterns(root: Path, paths: Iterable[Path]) -> tuple[list[FoundPattern], list[str]]:
    """All patterns of these modules, and the places of those whose text is made at run time."""
    found: list[FoundPattern] = []
    unknown: list[str] = []
    for path in paths:
        tree = ast.parse(path.read_text())
        calls = [node for node in ast.walk(tree) if _is_call_of_re(node)]
        if not calls:
            continue
        name = ".".join(path.relative_to(root).with_suffix("").parts)
        scope = vars(importlib.import_module(name.removesuffix(".__init__")))
        uses = _methods_used(tree)
        parents = {child: node for node in ast.walk(tree) for child in ast.iter_child_nodes(node)}
        for call in calls:
            place = f"{path.relative_to(root)}:{call.lineno}"
            pattern = _evaluate(call, scope)
            if pattern is None:
                unknown.append(place)
                continue
            for method in _methods_of(call, parents, uses):
                found.append(FoundPattern(place, pattern, method))
    return found, unknown


def _is_call_of_re(node: ast.AST) -> bool:
    return (
        isinstance(node, ast.Call)
        and isinstance(node.func, ast.Attribute)
        and isinstance(node.func.value, ast.Name)
        and node.func.value.id == "re"
        and node.func.attr in METHODS | {"compile"}
    )


def _evaluate(call: Any, scope: dict[str, Any]) -> re.Pattern[Any] | None:
    arguments = [call.args[0]]
    if call.func.attr == "compile":
        arguments += [*call.args[1:], *(keyword.value for keyword in call.keywords)]
    try:
        values = [eval(compile(ast.Expression(part), "", "eval"), scope) for part in arguments]
    except NameError:
        return None
    return re.compile(*values)


def _methods_used(tree: ast.AST) -> dict[str, set[str]]:
    """The methods that are called on each name of a module."""
    used: dict[str, set[str]] = {}
    for node in ast.walk(tree):
        is_method = isinstance(node, ast.Attribute) and node.attr in METHODS
        if is_method and isinstance(node.value, ast.Name):
            used.setdefault(node.value.id, set()).add(node.attr)
    return used


def _methods_of(call: Any, parents: dict[Any, Any], uses: dict[str, set[str]]) -> Iterator[str]:
    if call.func.attr != "compile":
        yield call.func.attr
        return
    parent = parents[call]
    if isinstance(parent, ast.Attribute):
        yield parent.attr
        return
    while not isinstance(parent, ast.stmt):
        parent = parents[parent]
    targets = getattr(parent, "targets", None) or [getattr(parent, "target", None)]
    name = getattr(targets[0], "id", "")
    # Used elsewhere, by import: the worst is assumed.
    yield from uses.get(name, {"search"})


# Attacks on a pattern

_CHARACTERS = [*map(chr, range(9, 127)), "\0", "\x7f", "\xe9"]
_PREFERRED = ("a", "1", " ", "\n", "/", "-", "<")
_CATEGORIES = {
    codes.CATEGORY_DIGIT: r"\d",
    codes.CATEGORY_NOT_DIGIT: r"\D",
    codes.CATEGORY_SPACE: r"\s",
    codes.CATEGORY_NOT_SPACE: r"\S",
    codes.CATEGORY_WORD: r"\w",
    codes.CATEGORY_NOT_WORD: r"\W",
}
_REPEATS = (codes.MAX_REPEAT, codes.MIN_REPEAT, codes.POSSESSIVE_REPEAT)


def attacks_on(pattern: re.Pattern[Any]) -> set[Attack]:
    source = pattern.pattern
    if isinstance(source, bytes):
        source = source.decode("latin-1")
    tree = _parser.parse(source, pattern.flags & ~re.UNICODE)
    pairs = {("", blank) for blank in (" ", "\t", "\n", "\r\n", "a", "1", "/")}
    _collect(tree, "", pairs)
    pairs |= {("", before + pumped) for before, pumped in pairs}
    pairs |= {("", before + pumped * 2) for before, pumped in pairs if before}
    return {Attack(before, pumped, after) for before, pumped in pairs if pumped for after in ENDS}


def _collect(nodes: Any, before: str, pairs: set[tuple[str, str]]) -> str:
    """Note what is repeated, each with an example of what comes before; returns an example."""
    for code, value in nodes:
        if code in _REPEATS:
            pairs |= {(before, body) for body in _bodies(value[2])}
            _collect(value[2], before, pairs)
            before += _example([(code, value)])
        elif code is codes.SUBPATTERN:
            before = _collect(value[3], before, pairs)
        elif code is codes.ATOMIC_GROUP:
            before = _collect(value, before, pairs)
        elif code is codes.BRANCH:
            for branch in value[1]:
                _collect(branch, before, pairs)
            before += _example(value[1][0])
        elif code in (codes.ASSERT, codes.ASSERT_NOT):
            _collect(value[1], before, pairs)
        else:
            before += _example([(code, value)])
        if before:
            pairs.add(("", before))
    return before


def _bodies(nodes: Any) -> list[str]:
    """Examples of what is repeated."""
    if len(nodes) == 1 and nodes[0][0] is codes.IN:
        return _members(nodes[0][1])
    if len(nodes) == 1 and nodes[0][0] is codes.ANY:
        return ["a", " ", "<"]
    return [_example(nodes)]


def _example(nodes: Any) -> str:
    """A short text that the nodes match."""
    text = ""
    for code, value in nodes:
        if code is codes.LITERAL:
            text += chr(value)
        elif code is codes.NOT_LITERAL:
            text += "b" if value == ord("a") else "a"
        elif code is codes.ANY:
            text += "a"
        elif code is codes.IN:
            text += _members(value)[0]
        elif code in _REPEATS:
            text += _example(value[2]) * min(value[0], 50)
        elif code is codes.SUBPATTERN:
            text += _example(value[3])
        elif code is codes.ATOMIC_GROUP:
            text += _example(value)
        elif code is codes.BRANCH:
            text += _example(value[1][0])
    return text


def _members(items: Any) -> list[str]:
    """A few characters of a set."""
    members = [character for character in _CHARACTERS if _is_member(items, character)]
    preferred = [character for character in _PREFERRED if character in members]
    return preferred[:4] or members[:2] or ["?"]


def _is_member(items: Any, character: str) -> bool:
    negated = False
    found = False
    for code, value in items:
        if code is codes.NEGATE:
            negated = True
        elif code is codes.LITERAL:
            found |= ord(character) == value
        elif code is codes.RANGE:
            found |= value[0] <= ord(character) <= value[1]
        else:
            found |= re.match(_CATEGORIES[value], character) is not None
    return found != negated
