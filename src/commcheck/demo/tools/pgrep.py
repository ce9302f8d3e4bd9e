"""``pgrep -x``: the daemons that may run."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Final

from commcheck.demo.parts import Answer
from commcheck.demo.state import HostState

TOOLS: Final = ("pgrep",)


def answers(host: HostState, queries: Iterable[str]) -> Iterator[Answer]:
    """Nothing and exit code 1 is "none"."""
    runs = host.system.lldpad
    yield Answer(("pgrep", "-x", "lldpad"), "1211\n" if runs else "", rc=0 if runs else 1)
