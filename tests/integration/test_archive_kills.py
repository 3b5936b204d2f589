"""A process that writes is killed with -9 at random moments: what a flush has promised is there
after the repair.
"""

from __future__ import annotations

import json
import random
import signal
import subprocess
import sys
import time
from hashlib import sha256
from pathlib import Path

import pytest

from crawlproj.archive import Archive
from crawlproj.archive.check import check_file
from crawlproj.archive.index_merge import merge_indexes
from crawlproj.archive.recovery import repair_open_files
from tests.support.archiving import accepted

pytestmark = [pytest.mark.proof, pytest.mark.kills]

KILLS = 15
CHILD = """
import json, random, sys
from hashlib import sha256
from pathlib import Path
from crawlproj.archive.writer import WriterOptions, WarcWriter
from tests.support.archiving import exchange
folder, seed = Path(sys.argv[1]), int(sys.argv[2])
promises = open(folder.parent / f"{seed}.jsonl", "w")
chance = random.Random(seed)
writer = WarcWriter(folder, "kill", f"w{seed}", {}, WriterOptions(max_bytes=300_000))
number = seed * 1_000_000
print("ready", flush=True)
while True:
    batch = []
    for _ in range(chance.randint(1, 30)):
        number += 1
        body = chance.randbytes(chance.randint(0, 20_000))
        batch.append((number, sha256(body).hexdigest(), writer.put(exchange(number % 1000, body, url=f"http://h/{number}"))))
    writer.flush().result()
    for number, digest, receipt in batch:
        place = receipt.record_location
        promises.write(json.dumps([number, digest, place.file, place.offset, place.length]) + "\\n")
    promises.flush()
"""


def start(folder: Path, seed: int) -> subprocess.Popen[str]:
    command = [sys.executable, "-c", CHILD, str(folder), str(seed)]
    root = Path(__file__).resolve().parents[2]
    child = subprocess.Popen(command, stdout=subprocess.PIPE, text=True, cwd=root)
    assert child.stdout is not None
    assert child.stdout.readline() == "ready\n"
    return child


def kill(child: subprocess.Popen[str], after_s: float) -> None:
    time.sleep(after_s)
    child.send_signal(signal.SIGKILL)
    child.wait()
    assert child.stdout is not None
    child.stdout.close()


def promises(folder: Path) -> list[list[str]]:
    """What all of them had promised; the last line of a file may be half."""
    lines = [
        line
        for path in folder.glob("*.jsonl")
        for line in path.read_text().splitlines(keepends=True)
    ]
    return [json.loads(line) for line in lines if line.endswith("\n")]


def test_what_a_flush_promised_is_there_after_a_kill(tmp_path: Path) -> None:
    folder = tmp_path / "warc"
    chance = random.Random(5)
    neighbour = start(folder, 99)
    for seed in range(KILLS):
        kill(start(folder, seed), chance.uniform(0.02, 0.4))
        done = repair_open_files(folder)
        assert len(done) <= 1, "the neighbour's file is not touched"
        assert sum(each.cut_bytes > 0 for each in done) <= 1
        assert not any(each.saved for each in done)
    kill(neighbour, 0.1)
    repair_open_files(folder)
    assert not list(folder.glob("*.warc.gz.open"))
    merge_indexes(folder)
    archive = Archive(folder)
    promised = promises(tmp_path)
    assert len(promised) > 100
    for number, digest, file, offset, length in promised:
        record = archive.read(file, int(offset), int(length))
        assert (record.url, sha256(record.body).hexdigest()) == (f"http://h/{number}", digest)
        assert len(archive.versions(f"http://h/{number}")) == 1
    for path in archive.closed_files():
        assert not list(check_file(path))
    assert accepted(archive.closed_files()[0])
