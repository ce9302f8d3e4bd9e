"""Compares what was measured with what the generator of traces knows exactly."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from commcheck.trace.facts import RankFacts, Step
from commcheck.trace.read import read
from commcheck.trace.steps import measure
from tests.trace import make_trace

MS = {
    "step_time_ms": "time_ns",
    "host_step_ms": "host_ns",
    "compute_busy_ms": "compute_ns",
    "comm_busy_ms": "comm_ns",
    "mem_busy_ms": "mem_ns",
    "overlapped_ms": "overlapped_ns",
    "exposed_comm_ms": "exposed_ns",
    "exposed_comm_strict_ms": "exposed_strict_ns",
    "longest_blank_ms": "longest_blank_ns",
    "idle_ms": "idle_ns",
    "host_wait_idle_ms": "host_gap_ns",
    "host_only_wait_ms": "host_wait_ns",
}


def made(folder: Path, **options: Any) -> tuple[list[Path], dict[str, Any]]:
    """Generate a job's traces; the files and what they must yield."""
    paths, expected = make_trace.make(str(folder), make_trace.variant(**options))
    return [Path(path) for path in paths], expected


def facts_of(path: Path) -> RankFacts:
    """The facts of one file."""
    (facts,) = measure(read(path))
    return facts


def assert_identity(step: Step) -> None:
    """The step time is the sum of its four disjoint parts."""
    parts = (step.compute_ns, step.exposed_ns, step.mem_extra_ns, step.idle_ns)
    assert sum(parts) == step.time_ns
    assert min(parts) >= 0
    assert step.overlapped_ns + step.exposed_ns == step.comm_ns
    assert step.exposed_strict_ns <= step.exposed_ns
    assert (step.longest_blank_ns or 0) <= step.exposed_ns


def assert_as_expected(facts: RankFacts, want: dict[str, Any], skip: frozenset[str]) -> None:
    """Every metric of the generator, to the nanosecond; shares to the millionth."""
    assert len(facts.steps) == want["step_count"]
    for step, wanted in zip(facts.steps, want["steps"], strict=False):
        assert_identity(step)
        for key, field in MS.items():
            if key not in skip:
                assert getattr(step, field) == round(wanted[key] * 1e6), (step.name, key)
        assert step.kernels == wanted["kernels"]
        assert step.comm_kernels == wanted["comm_kernels"]
        if "forward_ms" in wanted and "forward_ms" not in skip:
            assert step.forward_ns is not None
            assert step.gather_ns is not None
            assert step.gather_exposed_ns is not None
            assert step.forward_ns == round(wanted["forward_ms"] * 1e6)
            share = wanted["allgather_share_of_forward"]
            assert step.gather_ns / step.forward_ns == pytest.approx(share, abs=1e-6)
            share = wanted["exposed_allgather_share_of_forward"]
            assert step.gather_exposed_ns / step.forward_ns == pytest.approx(share, abs=1e-6)
    for kind, wanted in want["collectives"].items():
        (move,) = (move for move in facts.moved if move.kind == kind)
        assert (move.count, move.time_ns) == (wanted["count"], round(wanted["time_ms"] * 1e6))
        if "bytes" not in skip:
            assert move.size_bytes == wanted["bytes"]
            assert move.algbw_gbytes == pytest.approx(wanted["algbw_GBps"], abs=1e-6)
            assert move.busbw_gbytes == pytest.approx(wanted["busbw_GBps"], abs=1e-6)
            assert sorted(move.sizes.items()) == [tuple(each) for each in wanted["sizes"]]


def sample_jobs(folder: str) -> Iterator[tuple[dict[str, Any], list[Path]]]:
    """The expectations and files of every generated job in a folder."""
    for path in sorted(Path(folder).glob("*.expected.json")):
        expected = json.loads(path.read_text())
        yield expected, [path.parent / name for name in expected["files"]]
