"""A language process that does not come up is counted, and said once."""

from __future__ import annotations

from collections import Counter

import pytest

from crawlproj.content.language import Sample
from crawlproj.content.language_process import MAX_FAILURES, LanguageReader
from crawlproj.scheduling.language_watch import LanguageWatch


def test_a_process_that_does_not_start_is_counted_with_its_texts_and_said_once(
    caplog: pytest.LogCaptureFixture,
) -> None:
    reader = LanguageReader(start_s=0.0)
    counted: Counter[str] = Counter()
    watch = LanguageWatch(reader, lambda name, number: counted.update({name: number}))
    watch.take_look()
    assert not counted and not caplog.messages
    texts = [Sample("The council has met again to speak about the old bridge.", "")] * 2
    for _ in range(MAX_FAILURES + 1):
        assert reader.detect(texts) == ["", ""]
        watch.take_look()
    reader.close()
    assert counted == {"languages/failed": MAX_FAILURES, "languages/missed": 2 * MAX_FAILURES + 2}
    (message,) = caplog.messages
    assert "finds languages has failed" in message and "TimeoutError" in message
