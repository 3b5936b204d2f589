"""The language process: samples of texts in, their languages out, as JSON over its two pipes.

`language_process` starts it. It imports nothing of Scrapy.
"""

from __future__ import annotations

import json
import signal
import unicodedata
from array import array
from collections.abc import Callable, Sequence
from typing import Any, Final, TypeAlias

from crawlproj.content import language
from crawlproj.content.child_process import receive_frame, send_frame, take_pipes

READY: Final = b"[]"
"""The first reply, when everything is loaded."""

LEAST: Final = 0.01
"""Languages of less probability are not looked at."""

KNOWN: Final = 0.5
"""Features of the model per byte: texts in its languages have 0.75 to 1, scripts that it does not
know 0 to 0.4.
"""

_GROUPS: Final = {
    1: [[1]],
    2: [[1, 1], [1, 0], [0, 1]],
    3: [[1, 1, 1], [1, 0.5, 0], [0, 0.5, 1], [1, 0, 0], [0, 1, 0], [0, 0, 1]],
    4: [
        [1, 1, 1, 1],
        [1, 1, 0, 0],
        [0, 0, 1, 1],
        [1, 0, 0, 0],
        [0, 1, 0, 0],
        [0, 0, 1, 0],
        [0, 0, 0, 1],
    ],
}
"""For each number of parts: the whole, two halves, each part, as sums of parts."""

DetectFunction: TypeAlias = Callable[[str, str], str]


class LanguageModel:
    """py3langid's model, asked about a text and all of its parts at once.

    Its own functions take one text at a time, and three times as long for all that is asked here.
    """

    def __init__(self) -> None:
        import numpy
        from py3langid.langid import (  # type: ignore[import-untyped]
            MODEL_FILE,
            LanguageIdentifier,
            visit_counts,
        )

        self._numpy = numpy
        self._visit = visit_counts
        identifier = LanguageIdentifier.from_model_file(MODEL_FILE, norm_probs=True)
        self._table = identifier.nb_ptc
        self._prior = identifier.nb_pc
        self._moves = identifier.tk_nextmove
        # Lists of so many numbers would take 8 MB more.
        self._rows = array("I", [row << 8 for row in identifier.tk_row])
        self._outputs = array("i", identifier.tk_output)
        names = [language.normalize_language(code) for code in identifier.nb_classes]
        self._languages = sorted({name or language.UNDETERMINED for name in names})
        self._members = numpy.zeros((len(names), len(self._languages)), dtype=numpy.float32)
        for row, name in enumerate(names):
            column = self._languages.index(name or language.UNDETERMINED)
            self._members[row, column] = 1

    def detect(self, text: str, hint: str) -> str:
        """The language of a text with a hint."""
        if not language.is_text(text):
            return language.UNDETERMINED
        text = unicodedata.normalize("NFC", text)
        if text.isupper():  # the model has learnt few such texts
            text = text.lower()
        guesses = self._guess(language.split_sample(text))
        return language.judge_language(guesses[0], [guesses[1:3], guesses[3:]], hint)

    def _guess(self, texts: list[str]) -> list[list[language.Guess]]:
        """The guesses about all parts together, about the first and second half of them if there
        are two at least, and about each if there are three at least. None if the model does not
        know the script, of which it would be sure all the same.
        """
        numpy = self._numpy
        parts = [text.encode("utf-8", "replace") for text in texts]
        size = sum(map(len, parts))
        places: dict[int, int] = {}
        counts = numpy.zeros((len(parts), size), dtype=numpy.float32)
        for row, part in enumerate(parts):
            visits = self._visit(self._moves, self._rows, self._outputs, part) or {}
            columns = [places.setdefault(feature, len(places)) for feature in visits]
            counts[row, columns] = list(visits.values())
        if size > 1.5 * sum(map(len, texts)) and counts.sum() < KNOWN * size:
            return [[]]
        groups = _GROUPS[len(parts)]
        members = numpy.array(groups, dtype=numpy.float32)
        sizes = members @ numpy.array([len(part) for part in parts], dtype=numpy.float32)
        features = numpy.fromiter(places, dtype=numpy.intp, count=len(places))
        seen = numpy.log1p(members @ counts[:, : len(places)])
        scores = seen @ self._table[features].astype(numpy.float32) + self._prior
        scores /= numpy.sqrt(numpy.maximum(sizes, 1))[:, None]  # as py3langid does
        scores = numpy.exp(scores - scores.max(axis=1, keepdims=True))
        scores /= scores.sum(axis=1, keepdims=True)
        return self._rank(scores @ self._members)

    def _rank(self, probabilities: Any) -> list[list[language.Guess]]:
        """Of each row the languages with some probability, best first."""
        ranked: list[list[language.Guess]] = [[] for _ in probabilities]
        rows, columns = self._numpy.nonzero(probabilities > LEAST)
        values = probabilities[rows, columns].tolist()
        for row, column, value in zip(rows.tolist(), columns.tolist(), values, strict=True):
            ranked[row].append(language.Guess(self._languages[column], value))
        for guesses in ranked:
            guesses.sort(key=lambda guess: guess.probability, reverse=True)
        return ranked


def load_detector() -> DetectFunction:
    """The function that names the language of a text with a hint.

    Everything is loaded and used here once, because in the sandbox no file can be opened.
    """
    model = LanguageModel()
    for length in (60, 120, 180, 240):
        model.detect(("This is a sentence, and a long one it is. " * 6)[:length], "en")
    return model.detect


def detect_batch(samples: Sequence[Sequence[str]], detect: DetectFunction) -> list[str]:
    """One language for each sample; "" for one over which anything goes wrong."""
    found = []
    for text, hint in samples:
        try:
            found.append(detect(text, hint))
        except Exception:
            found.append(language.NOT_JUDGED)
    return found


def main(memory: int, timeout_s: int, cpu_s: int, parent: int) -> None:
    """Answer one batch after the other, until the pipe ends."""
    from crawlproj.content.documents import sandbox  # the crawl imports this module's constants

    sandbox.die_with_parent(parent)
    incoming, outgoing = take_pipes()
    detect = load_detector()  # before the limits: it unpacks its model into a temporary file
    sandbox.limit_resources(memory, cpu_s)
    sandbox.restrict_syscalls()
    send_frame(outgoing, READY)
    while True:
        samples = json.loads(receive_frame(incoming))
        # CPU time, not wall time: SIGPROF ends the process if it takes more.
        signal.setitimer(signal.ITIMER_PROF, timeout_s)
        found = detect_batch(samples, detect)
        signal.setitimer(signal.ITIMER_PROF, 0)
        send_frame(outgoing, json.dumps(found).encode())
