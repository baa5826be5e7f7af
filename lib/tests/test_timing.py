"""Times that a reader waits."""

from __future__ import annotations

import pytest

from lib.timing import Stopwatch, median_without_warm_up, time_to_first_text


@pytest.mark.parametrize("stream, seconds", [
    ([], None), ([("", 1.0)], None), ([("a", 1.0), ("b", 2.0)], 1.0), ([("", 1.0), ("ồ", 2.0)], 2.0),
    ([(" ", 1.0)], 1.0),
])
def test_the_first_piece_that_is_not_empty(stream, seconds):
    assert time_to_first_text(stream) == time_to_first_text(iter(stream)) == seconds


def test_the_warm_up_is_dropped():
    assert median_without_warm_up([9.0, 1.0, 3.0, 2.0]) == 2.0 and median_without_warm_up([9.0, 1.0, 2.0]) == 1.5
    for few in ([], [1.0]):
        with pytest.raises(ValueError, match="at least two runs"):
            median_without_warm_up(few)


def test_the_stopwatch_notes_and_passes_on():
    times, heard = iter([10.0, 11.5, 12.0]), []
    watch = Stopwatch(heard.append, lambda: next(times))
    watch("")
    watch("Hi")
    assert watch.pieces == [("", 1.5), ("Hi", 2.0)] and heard == ["", "Hi"]
    assert time_to_first_text(watch.pieces) == 2.0
