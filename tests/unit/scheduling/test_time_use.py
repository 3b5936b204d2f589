"""Where the time of a crawl goes, with a clock that the test makes."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from crawlproj.scheduling.time_use import TimeUse, Use, percentages


def test_cpu_is_reading_and_the_rest_is_what_is_waited_for() -> None:
    use = TimeUse(100.0, 5.0)
    use.add_look(100.1, 5.06, Use.SERVERS)
    use.add_look(100.3, 5.06, Use.CLOCKS)
    use.add_look(100.4, 5.07, Use.DATABASE)
    use.add_look(100.5, 5.07, Use.STORING)
    assert use.seconds == pytest.approx(
        {
            Use.SERVERS: 0.04,
            Use.CLOCKS: 0.2,
            Use.READING: 0.07,
            Use.DATABASE: 0.09,
            Use.STORING: 0.1,
            Use.IDLE: 0.0,
        }
    )


def test_more_cpu_than_time_is_no_more_than_the_time() -> None:
    """Both clocks tick in steps of their own."""
    use = TimeUse(0.0, 0.0)
    use.add_look(0.1, 0.11, Use.SERVERS)
    use.add_look(0.1, 0.11, Use.SERVERS)
    assert use.seconds[Use.READING] == pytest.approx(0.1) and use.seconds[Use.SERVERS] == 0


@given(st.dictionaries(st.sampled_from(Use), st.floats(0, 1e6), min_size=1))
def test_percentages_add_up_to_a_hundred(seconds: dict[Use, float]) -> None:
    found = percentages(seconds)
    if sum(seconds.values()) <= 0:
        assert found == {}
        return
    assert sum(found.values()) == 100
    assert list(found.values()) == sorted(found.values(), reverse=True)
    total = sum(seconds.values())
    assert all(abs(share - 100 * seconds[use] / total) <= 1.01 for use, share in found.items())
