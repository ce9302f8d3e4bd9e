"""``systemctl is-active``: the one service that checks ask for."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Final

from commcheck.demo.parts import Answer
from commcheck.demo.state import HostState

TOOLS: Final = ("systemctl",)


def answers(host: HostState, queries: Iterable[str]) -> Iterator[Answer]:
    """Exit code 3 for any state but active."""
    state = host.upkeep.fabric_manager
    argv = ("systemctl", "is-active", "nvidia-fabricmanager")
    yield Answer(argv, f"{state}\n", rc=0 if state == "active" else 3)
