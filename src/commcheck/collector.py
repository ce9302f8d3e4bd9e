"""Python's search for cycles: not where much is made, or left behind, of which nothing is one."""

from __future__ import annotations

import gc
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Final

_SELDOM: Final = (50_000, 10, 10)
"""Objects more than before, until cycles are looked for.

What is known of a host is some 6,000 objects, which go away by themselves when it was judged: at
Python's 700 they were walked before that, a tenth of a climb. What is in cycles, a connection of
paramiko's, is some 500 objects of a host. The facts of a large log grow to the end, and to walk
them over and over was an eighth of its audit.
"""


@contextmanager
def put_off() -> Iterator[None]:
    """Within, no cycles are looked for: a record of 120,000 verdicts would be walked over and over.

    For plain work that ends soon. What is no longer used goes away as ever; what is left counts as
    old, which is walked last.
    """
    was_on = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        _count_as_old()
        if was_on:
            gc.enable()


@contextmanager
def spare() -> Iterator[None]:
    """Within, cycles are looked for seldom, and not among what there is by now.

    For a climb or an audit, whatever its size. The modules, the checks and the plan of a climb are
    150,000 objects, so that each search among them costs as much as a host does.
    """
    before = gc.get_threshold()
    gc.freeze()
    gc.set_threshold(*_SELDOM)
    try:
        yield
    finally:
        gc.set_threshold(*before)
        _count_as_old()


def _count_as_old() -> None:
    gc.freeze()
    gc.unfreeze()  # to the oldest generation, and without a walk
