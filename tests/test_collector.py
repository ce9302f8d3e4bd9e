"""What is spared is walked seldom, and none of it for ever."""

from __future__ import annotations

import gc
import weakref
from typing import Any

import pytest

from commcheck.collector import put_off, spare


class Ring:
    """An object that only the search for cycles can free."""

    def __init__(self) -> None:
        self.me: Any = self


def test_what_was_made_while_put_off_counts_as_old() -> None:
    with put_off():
        assert not gc.isenabled()
        made = [[number] for number in range(5_000)]
    assert gc.isenabled()
    assert gc.get_count()[0] < 1_000  # else the next object would have all of them walked
    assert any(each is made for each in gc.get_objects(generation=2))


def test_within_another_it_stays_put_off() -> None:
    with put_off():
        with put_off():
            pass
        assert not gc.isenabled()


@pytest.mark.parametrize("block", [put_off, spare])
def test_garbage_of_before_and_within_is_found_afterwards(block: Any) -> None:
    before, threshold = Ring(), gc.get_threshold()
    seen = [weakref.ref(before)]
    with block():
        del before
        seen.append(weakref.ref(Ring()))
    assert gc.get_threshold() == threshold
    assert gc.get_freeze_count() == 0
    gc.collect()
    assert [each() for each in seen] == [None, None]


def test_within_what_there_was_is_not_walked() -> None:
    old = Ring()
    seen = weakref.ref(old)
    with spare():
        del old
        gc.collect()
        assert seen() is not None
