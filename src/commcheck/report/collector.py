"""Python's search for cycles, put off while much is made of which nothing is one."""

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
