"""The spider of the tutorial, run as it stands there."""

from __future__ import annotations

import json
import re
from pathlib import Path

from crawlproj.demo import DemoServer
from tests.support.crawling import ROOT, run_crawl


def test_the_spider_of_the_tutorial_writes_headlines(tmp_path: Path) -> None:
    code = re.search(
        r"^```python\n(.*?)^```", (ROOT / "docs" / "tutorial.md").read_text(), re.M | re.S
    )
    assert code
    (tmp_path / "mine").mkdir()
    (tmp_path / "mine" / "__init__.py").touch()
    (tmp_path / "mine" / "headlines.py").write_text(code[1])
    out = tmp_path / "headlines.jsonl"
    with DemoServer("tiny") as demo:
        words = ["headlines", "-a", f"seeds={demo.url('one')}", "-O", str(out)]
        settings = {
            "DNS_HOSTS": demo.dns_hosts,
            "CRAWL_PATIENCE": "1s",
            "SPIDER_MODULES": "spiders,mine",
        }
        result = run_crawl(words, settings, tmp_path / "crawl", env={"PYTHONPATH": str(tmp_path)})
        home = demo.url("one")
    found = {
        item["url"]: item["headline"] for item in map(json.loads, out.read_text().splitlines())
    }
    assert result.code == 0
    assert found[home] and len(found) > 5
    assert "Traceback" not in result.log + result.stderr
