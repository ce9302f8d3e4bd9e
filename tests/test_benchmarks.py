"""The benchmarks run, small: each proves what it has measured."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from benchmarks import log_audit, rows, trace
from benchmarks.table import Row

PARTS: dict[str, Callable[[], Iterator[Row]]] = {
    "start-up": rows.start_up,
    "rendering": lambda: rows.rendering(20, 10),
    "cheap": lambda: rows.cheap(10),
    "waiting": lambda: rows.waiting(3),
    "log": lambda: log_audit.audits(50_000),
}


@pytest.mark.slow
@pytest.mark.parametrize("part", PARTS)
def test_a_part(part: str) -> None:
    assert list(PARTS[part]())  # ends with SystemExit where something is not as it should be


@pytest.mark.slow
def test_a_trace(tmp_path: Path) -> None:
    path = trace.generate(tmp_path, 2, 3)
    assert trace._ours(path).output.startswith("OVERLAP 0.")
