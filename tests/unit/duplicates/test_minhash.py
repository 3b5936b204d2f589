from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

from crawlproj.content.document import Block
from crawlproj.duplicates.compare import judged_text
from crawlproj.duplicates.minhash import Signer
from crawlproj.duplicates.words import shingle_hashes

ROOT = Path(__file__).resolve().parents[3]
TEXT = " ".join(f"word{n}" for n in range(60)) + " Straße 漢字"
PINNED = (
    -7869888328355288233,
    -3050385358488229018,
    -2961278125405820324,
    -8932275491395250634,
    -975625400272404237,
    -2687418059134081241,
    -3644791278094688861,
    4142085897764952807,
)
"""Bands of TEXT in scope 7. A change makes all stored bands worthless: it needs a new scheme."""


def bands(text: str, scope: int = 7, signer: Signer | None = None) -> tuple[int, ...] | None:
    return (signer or Signer()).bands(judged_text([Block(text)]), scope)


def run(program: str, **environment: str) -> str:
    done = subprocess.run(
        [sys.executable, "-c", program],
        cwd=ROOT,
        env={**os.environ, **environment},
        capture_output=True,
        text=True,
        check=True,
    )
    return done.stdout.strip()


def test_bands_never_change() -> None:
    assert Signer().scheme == "affine32 seed=1 perm=128 shingle=3 bands=8x16 text=long1"
    assert bands(TEXT) == PINNED


def test_bands_are_the_same_in_every_process() -> None:
    program = "from tests.unit.duplicates.test_minhash import TEXT, bands\nprint(bands(TEXT))"
    assert {run(program, PYTHONHASHSEED=seed) for seed in ("1", "2")} == {str(bands(TEXT))}


def test_datasketch_is_imported_without_scipy_and_can_be_imported_as_a_whole_later() -> None:
    program = """
import sys
import crawlproj.duplicates.minhash as ours
assert "scipy" not in sys.modules, "scipy"
assert not [name for name in sys.modules if name.startswith("datasketch")]
import datasketch
assert "scipy" in sys.modules
lsh = datasketch.MinHashLSH(threshold=0.5, num_perm=16)
minhash = datasketch.MinHash(16)
minhash.update(b"a")
lsh.insert("a", minhash)
assert lsh.query(minhash) == ["a"]
print(ours.Signer().scheme[:8])
"""
    assert run(program) == "affine32"


def test_datasketch_that_is_there_is_used() -> None:
    program = """
import datasketch
import crawlproj.duplicates.minhash as ours
assert ours.MinHash is datasketch.MinHash
import datasketch.minhash
print("fine")
"""
    assert run(program) == "fine"


def test_signature_is_that_of_datasketch_used_in_the_ordinary_way() -> None:
    from datasketch import MinHash

    shingles = shingle_hashes(np.arange(3000, dtype=np.uint64) ** np.uint64(3), 3)
    ordinary = MinHash(num_perm=128, seed=1, hashfunc=lambda value: value >> 32)
    ordinary.update_batch(shingles.tolist())
    assert np.array_equal(Signer().sign_shingles(shingles), ordinary.hashvalues)


def test_other_scopes_seeds_and_texts_have_other_bands() -> None:
    first = bands(TEXT)
    others = [
        bands(TEXT, 8),
        bands(TEXT, -7),
        bands(TEXT, signer=Signer(seed=2)),
        bands(TEXT[::-1]),
    ]
    assert first is not None and len(set(first)) == 8
    for other in others:
        assert other is not None
        assert not set(first) & set(other)
    assert all(-(2**63) <= band < 2**63 for band in first)


def test_texts_of_less_than_twenty_shingles_have_no_bands() -> None:
    words = [f"somewhat{n}" for n in range(22)]
    assert bands(" ".join(words[:21])) is None
    assert bands(" ".join(words)) is not None
    assert bands("the same words again " * 500) is None
    assert bands("") is None


def test_a_scheme_says_what_it_was_made_by() -> None:
    assert Signer(96, 5, 6, 3).scheme == "affine32 seed=3 perm=96 shingle=5 bands=6x16 text=long1"
    assert len(bands(TEXT, signer=Signer(96, 5, 6)) or ()) == 6
    with pytest.raises(ValueError):
        Signer(4, band_count=8)


def test_a_crawl_that_compares_nothing_loads_nothing_for_it() -> None:
    program = """
import sys
import crawlproj.scheduling.crawl_worker, middlewares.pages, pipelines.dedup, pipelines.store
from crawlproj.duplicates.marks import PageMarker
from crawlproj.duplicates.rules import DuplicateRules
PageMarker(DuplicateRules(near=False, paragraphs=False), 1)
print(sorted({"numpy", "datasketch", "py3langid"} & sys.modules.keys()))
"""
    assert run(program) == "[]"
