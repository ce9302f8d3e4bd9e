"""Python's search for cycles: not where much is made, or left behind, of which nothing is one."""

from __future__ import annotations

import gc
from collections.abc import Iterator
from contextlib import contextmanager


@contextmanager
def put_off() -> Iterator[None]:
    """Within, no cycles are looked for: a record of 120,000 verdicts would be walked over and over.

    For plain work that ends soon. What is no longer used goes away as ever.
    """
    was_on = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        if was_on:
            gc.enable()


def spare() -> None:
    """What there is by now stays to the end and is walked no more; once in a process.

    For modules, checks, a record: with some 150,000 objects each search costs as much as a host
    does. Once, since garbage that is spared is never found.
    """
    if not gc.get_freeze_count():
        gc.freeze()
