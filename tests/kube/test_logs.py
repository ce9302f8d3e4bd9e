"""What of a container's log is kept, however it arrives."""

from __future__ import annotations

import re
from collections.abc import Callable
from itertools import pairwise

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from commcheck.command import Output
from commcheck.errors import Unreachable
from commcheck.kube import logs
from commcheck.kube.logs import Picked
from commcheck.kube.place import Cluster, Place
from commcheck.nccl.host_log import MARKS, SCRIPT, parse
from tests.kube import api

WORDS = ("w-0:1:1 [0] NCCL INFO", "loss", "step")
LINES = [f"2026-01-02T03:04:{n:012.9f}Z {WORDS[n % 3]} {n}\n".encode() for n in range(40)]


def text_of(picked: Picked) -> str:
    return parse(Output(picked.text().decode())).text


@given(st.lists(st.integers(0, 2000), max_size=8))
@settings(max_examples=40)
def test_the_same_lines_however_the_log_is_cut_into_chunks(cuts: list[int]) -> None:
    log = b"".join(LINES)
    edges = sorted({0, *cuts, len(log)})
    picked = Picked()
    picked.take((log[a:b] for a, b in pairwise(edges)), 1 << 20)
    assert re.findall(r"INFO (\d+)", text_of(picked)) == [str(n) for n in range(0, 40, 3)]
    assert "loss" not in text_of(picked)


def test_lines_that_were_seen_are_not_taken_twice() -> None:
    picked = Picked()
    picked.take(LINES[:20], 1 << 20)
    picked.take(LINES[10:], 1 << 20, after=picked.until)
    assert re.findall(r"INFO (\d+)", text_of(picked)) == [str(n) for n in range(0, 40, 3)]


def test_of_a_long_log_both_ends_are_kept(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(logs, "HALF_BYTES", 200)
    picked = Picked()
    assert not picked.take(LINES, 1 << 20)
    log = parse(Output(picked.text().decode()))
    assert log.truncated
    numbers = re.findall(r"INFO (\d+)", log.text)
    assert (numbers[0], numbers[-1]) == ("0", "39")
    assert 4 <= len(numbers) < 14


def test_marks_are_those_of_a_hosts_log() -> None:
    assert all(mark.decode() in SCRIPT for mark in MARKS)


def test_a_log_beyond_the_limit_is_read_from_both_ends(
    cluster_of: Callable[..., api.Cluster], monkeypatch: pytest.MonkeyPatch
) -> None:
    pod = api.Pod("p", log=[b"NCCL INFO %d\n" % n for n in range(3000)])
    cluster = cluster_of(pod)
    monkeypatch.setattr(logs, "TAIL_LINES", 500)
    place = Place(cluster=Cluster(kubeconfig=str(cluster.kubeconfig)), pod="p")
    whole = parse(Output(logs.read(place, 20.0).decode()))
    assert not whole.truncated
    assert whole.text.count("NCCL") == 3000
    cut = parse(Output(logs.read(place, 20.0, limit_bytes=50_000).decode()))
    assert cut.truncated
    assert "INFO 0\n" in cut.text
    assert cut.text.endswith("INFO 2999\n")
    assert len(set(cut.text.splitlines())) == cut.text.count("\n")


def test_a_log_that_cannot_be_read_says_why(cluster_of: Callable[..., api.Cluster]) -> None:
    cluster = cluster_of(api.Pod("p", phase="Pending"))
    place = Place(cluster=Cluster(kubeconfig=str(cluster.kubeconfig)), pod="p")
    with pytest.raises(Unreachable, match="waiting to start"):
        logs.read(place, 20.0)
