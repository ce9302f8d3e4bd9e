"""Python's search for cycles: not where much is made, or left behind, of which nothing is one."""

from __future__ import annotations

import gc
from collections.abc import Iterator
from contextlib import contextmanager


@contextmanager
def put_off() -> Iterator[None]:
    """Within, no cycles are looked for: a record of 120,000 verdicts would be walked over and over.

    For plain work that ends soon. What is no longer used goes away as ever; what is left is walked
    no more.
    """
    was_on = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        spare()
        if was_on:
            gc.enable()


def spare() -> None:
    """What there is by now stays to the end, and is walked no more, not even by the last search.

    For modules and checks once they are loaded, and before a process ends: with some 150,000
    objects each search costs as much as a host does.
    """
    gc.freeze()
