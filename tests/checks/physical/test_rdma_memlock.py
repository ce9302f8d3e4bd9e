"""physical.rdma-memlock"""

from __future__ import annotations

from typing import Any

import pytest

from checks.physical.rdma_memlock import CHECK, LIMITED
from commcheck.model import Status


def said(text: str) -> dict[str, tuple[str, int]]:
    return {"cat /proc/self/limits": (text, 0)}


def test_unlimited(judged: Any) -> None:
    assert judged(CHECK, said("procfs/limits-unlimited.txt")).verdict.status is Status.PASS


@pytest.mark.parametrize(
    ("name", "words"),
    [
        ("limits-64k.txt", "65536 bytes (at most 65536 bytes)"),
        ("limits-hard-unlimited.txt", "8388608 bytes (at most unlimited)"),
    ],
)
def test_limited_is_a_warning(judged: Any, name: str, words: str) -> None:
    verdict = judged(CHECK, said(f"procfs/{name}")).verdict
    assert (verdict.status, verdict.cause) == (Status.WARN, LIMITED)
    assert words in verdict.reason


def test_unreadable(judged: Any) -> None:
    assert judged(CHECK, said("garbage\n")).verdict.status is Status.ERROR
