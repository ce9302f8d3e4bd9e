"""How many processes share the hosts; what they do together is told by tests/demo/test_cheap.py."""

from __future__ import annotations

import multiprocessing
import os
import threading
from collections.abc import Sequence

import pytest

from commcheck.errors import NotKept
from commcheck.model import Host
from commcheck.workers import Pool, Post, Told, workers_for


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


def test_none_is_left_where_what_they_tell_cannot_be_kept() -> None:
    """A full disk ends the run while they still have much to say."""

    def work(hosts: Sequence[Host], post: Post, stop: threading.Event) -> None:
        while not stop.is_set():
            post(Told("lines", hosts[0].name, b"x" * 65536))

    def full(_told: Told) -> None:
        raise NotKept("No space left on device")

    pool = Pool(2, [Host("gpu-01"), Host("gpu-02")], work)
    with pytest.raises(NotKept), pool:
        pool.listen(full, lambda _host, error: pytest.fail(str(error)), threading.Event(), 60.0)
    assert not multiprocessing.active_children()
