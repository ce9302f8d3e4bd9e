"""How many processes share the hosts; what they do together is told by tests/demo/test_cheap.py."""

from __future__ import annotations

import os

import pytest

from commcheck.workers import workers_for


@pytest.mark.parametrize(
    ("cores", "hosts", "wanted", "count"),
    [
        (2, 5_000, 0, 1),  # one core for us, one for everything else
        (16, 299, 0, 1),
        (16, 300, 0, 2),
        (16, 1_000, 0, 6),
        (16, 5_000, 0, 8),
        (16, 10, 3, 3),
        (None, 5_000, 0, 1),
    ],
)
def test_by_the_hosts_and_the_cores(
    monkeypatch: pytest.MonkeyPatch, cores: int | None, hosts: int, wanted: int, count: int
) -> None:
    monkeypatch.setattr(os, "cpu_count", lambda: cores)
    assert workers_for(hosts, wanted) == count
