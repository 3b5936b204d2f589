"""Readable, English-like text without end, from a small vocabulary and a random stream."""

from __future__ import annotations

import random


def _words(text: str) -> tuple[str, ...]:
    return tuple(text.split())


ADJECTIVES = _words("""
    quiet northern late broad careful narrow public coastal modest rapid open costly annual rural
    gentle early sharp steady local joint hidden ancient bright shared uneven formal rare popular
    plain silver regional wooden
""")
NOUNS = _words("""
    harbour bridge council market orchard ferry library railway festival museum budget river school
    theatre garden factory lighthouse station survey archive workshop choir valley reservoir bakery
    observatory tunnel vineyard hospital stadium laboratory meadow quarry gallery canal windmill
""")
PEOPLE = _words("""
    residents engineers teachers farmers sailors nurses students architects drivers volunteers
    musicians historians traders gardeners players bakers researchers officials visitors carpenters
""")
VERBS = _words("""
    repaired questioned measured opened defended visited delayed described painted counted welcomed
    planned restored compared financed closed photographed discussed extended inspected celebrated
    rebuilt praised examined
""")
THINGS = _words("""
    timetable roof entrance accounts promise collection programme harvest season plan map signal
    agreement painting report orchestra timber footpath record machine concert experiment wall
    ticket song recipe telescope contract fence statue
""")
ADVERBS = _words("""
    slowly quietly twice carefully openly early again together gladly reluctantly overnight briefly
    finally abroad
""")
PLACES = _words("""
    Aldermoor Brackwater Carrowby Dunlace Eastmere Fallowick Greyhaven Hollin Kestrel-on-Sea
    Larkfield Marrowdale Netherby Oxley Pendrake Quillham Ravensey Stonebeck Thornbury-Vale
    Ullermere Wexcombe
""")
FIRST = _words("""
    Ada Bram Clara Dov Elin Farid Greta Hugo Ines Jonas Kaya Leo Mira Nils Oona Pavel Rosa Sami Tess
    Yusuf
""")
LAST = _words("""
    Amberley Brandt Castell Dorn Eskil Farrow Garde Holm Ivers Jessop Kell Lindqvist Marsh Novak
    Orme Petrov
""")
TIMES = [
    "last winter",
    "on Monday",
    "in the spring",
    "after the storm",
    "before noon",
    "this week",
    "at the weekend",
]


class RandomText:
    """Titles, names and text from one random stream: the same stream gives the same text."""

    def __init__(self, stream: random.Random) -> None:
        self._pick = stream.choice
        self._number = stream.randint

    def person_name(self) -> str:
        return f"{self._pick(FIRST)} {self._pick(LAST)}"

    def title(self) -> str:
        pick = self._pick
        forms = (
            "{who} of {place} {did} the {adj} {noun}",
            "{adj} {noun} in {place}: {who} {did} the {thing}",
            "Why {place} {did} its {adj} {thing}",
            "{number} {who} and one {adj} {noun}",
        )
        text = pick(forms).format(
            who=pick(PEOPLE),
            place=pick(PLACES),
            did=pick(VERBS),
            adj=pick(ADJECTIVES),
            noun=pick(NOUNS),
            thing=pick(THINGS),
            number=self._number(3, 90),
        )
        return text[0].upper() + text[1:]

    def sentence(self) -> str:
        pick = self._pick
        forms = (
            "{When}, {number} {who} from {place} {did} the {adj} {thing} of the {noun}.",
            "The {adj} {noun} near {place} {did} {how}, and its {thing} was {did2} {when}.",
            '"We {did} the {thing} {how}," said {name}, one of the {who} of {place}.',
            "According to {name}, the {noun} in {place} has {did} {number} {adj2} visitors {when}.",
            "{name} {did} a {adj} {thing} {how} while the {who} {did2} the {noun}.",
            "Nobody in {place} had {did} the {adj2} {noun} since {name} {did2} it {when}.",
        )
        when = pick(TIMES)
        return pick(forms).format(
            When=when[0].upper() + when[1:],
            when=when,
            number=self._number(2, 980),
            who=pick(PEOPLE),
            place=pick(PLACES),
            did=pick(VERBS),
            did2=pick(VERBS),
            adj=pick(ADJECTIVES),
            adj2=pick(ADJECTIVES),
            noun=pick(NOUNS),
            thing=pick(THINGS),
            how=pick(ADVERBS),
            name=self.person_name(),
        )

    def paragraph(self) -> str:
        return " ".join(self.sentence() for _ in range(self._number(3, 6)))


def title_slug(title: str) -> str:
    """A title as part of a path: lower-case letters, digits and single hyphens."""
    kept = "".join(c if c.isalnum() else " " for c in title.lower())
    return "-".join(kept.split())
