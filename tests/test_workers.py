"""How many processes share the hosts; what they do together is told by tests/demo/test_cheap.py."""

from __future__ import annotations

import os

import pytest

from commcheck.workers import workers_for


@pytest.mark.parametrize(
    ("cores", "hosts", "forks", "wanted", "count"),
    [
        (2, 5_000, 64, 0, 1),  # one core for us, one for everything else
        (16, 299, 64, 0, 1),
        (16, 300, 64, 0, 2),
        (16, 1_000, 64, 0, 6),
        (16, 5_000, 64, 0, 8),
        (16, 10, 64, 3, 3),
        (16, 5_000, 1, 0, 1),  # one host after the other
        (16, 5_000, 2, 4, 2),
        (None, 5_000, 64, 0, 1),
    ],
)
def test_by_the_hosts_and_the_cores(
    monkeypatch: pytest.MonkeyPatch,
    cores: int | None,
    hosts: int,
    forks: int,
    wanted: int,
    count: int,
) -> None:
    monkeypatch.setattr(os, "cpu_count", lambda: cores)
    assert workers_for(hosts, forks, wanted) == count
