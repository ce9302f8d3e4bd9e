"""Every layout and mode of the generator yields exactly what the generator knows."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.trace.expected import assert_as_expected, assert_identity, facts_of, made, sample_jobs

SMALL = {"layers": 4, "kernels": 3, "steps": 3}
NPU_LACKS = frozenset({"host_wait_idle_ms", "host_only_wait_ms", "bytes", "forward_ms"})

CASES: dict[str, dict[str, Any]] = {
    "ddp": {},
    "straggler": {"ranks": 4, "straggler": 2, "straggler_factor": 1.35},
    "zero3": {"mode": "zero3"},
    "zero3-no-prefetch": {"mode": "zero3", "prefetch": 0},
    "zero3-far-prefetch": {"mode": "zero3", "prefetch": 3},
    "compute-only": {"mode": "none", "ranks": 1},
    "compact": {"style": "compact"},
    "begin-end": {"phases": "BE"},
    "begin-end-compact-epoch": {"phases": "BE", "style": "compact", "epoch_ts": True},
    "epoch": {"epoch_ts": True},
    "tail": {"dist_info": "tail"},
    "no-distributed-info": {"dist_info": "none"},
    "no-collective-arguments": {"coll_args": False},
    "two-streams": {"two_streams": True},
    "memcpy": {"memcpy": True},
    "sync-events": {"sync_events": True},
    "gz": {"gz": True},
    "outlier": {"outlier_step": 3},
    "clock": {"clock": [0, 5_000_000]},
    "second-device": {"local_device0": False},
    "launch-bound": {"kernel_us": 6, "launch_us": 14},
    "small-buckets": {"bucket_mb": 0.4, "layer_mb": 0.4, "alpha_us": 150},
    "npu": {"npu": True},
    "npu-memcpy-gz": {"npu": True, "memcpy": True, "gz": True},
}


@pytest.mark.parametrize("case", CASES)
def test_exact(case: str, tmp_path: Path) -> None:
    options = CASES[case]
    paths, expected = made(tmp_path, **{**SMALL, **options})
    skip = NPU_LACKS if options.get("npu") else frozenset()
    if options.get("coll_args") is False:
        skip = frozenset({"bytes"})
    for rank, path in enumerate(paths):
        facts = facts_of(path)
        assert facts.rank == rank
        assert facts.outside == 0
        assert_as_expected(facts, expected["ranks"][str(rank)], skip)


@given(
    st.fixed_dictionaries(
        {
            "mode": st.sampled_from(["ddp", "zero3", "none"]),
            "overlap": st.sampled_from([0.0, 0.4, 1.0]),
            "bucket_mb": st.sampled_from([1.0, 25.0]),
            "kernel_us": st.sampled_from([4.0, 60.0]),
            "launch_us": st.sampled_from([3.0, 15.0]),
            "two_streams": st.booleans(),
            "memcpy": st.booleans(),
            "sync_events": st.booleans(),
            "epoch_ts": st.booleans(),
            "npu": st.booleans(),
            "style": st.sampled_from(["pretty", "compact"]),
            "phases": st.sampled_from(["X", "BE"]),
            "straggler": st.sampled_from([-1, 1]),
            "straggler_factor": st.just(1.5),
            "prefetch": st.integers(0, 2),
            "seed": st.integers(0, 10_000),
        }
    )
)
@settings(max_examples=40)
def test_time_identity_and_metrics_hold_on_any_trace(
    tmp_path_factory: pytest.TempPathFactory, options: dict[str, Any]
) -> None:
    folder = tmp_path_factory.mktemp("trace")
    paths, expected = made(folder, layers=2, kernels=2, steps=2, memcpy_us=5, **options)
    skip = NPU_LACKS if options["npu"] else frozenset()
    for rank, path in enumerate(paths):
        assert_as_expected(facts_of(path), expected["ranks"][str(rank)], skip)


SAMPLES = os.environ.get("COMMCHECK_SAMPLES", "")
JOBS = list(sample_jobs(f"{SAMPLES}/traces")) if SAMPLES else []


SAMPLES_LACK = frozenset({"host_only_wait_ms"})


@pytest.mark.skipif(not JOBS, reason="COMMCHECK_SAMPLES names no folder with traces")
@pytest.mark.parametrize(("expected", "paths"), JOBS)
def test_samples(expected: dict[str, Any], paths: list[Path]) -> None:
    for rank, path in enumerate(paths):
        assert_as_expected(facts_of(path), expected["ranks"][str(rank)], SAMPLES_LACK)


@pytest.mark.parametrize("cap", [1, 25])
@pytest.mark.parametrize("rank", [0, 1])
def test_gloo_of_a_real_job(cap: int, rank: int) -> None:
    recorded = Path(__file__).parents[1] / "recorded" / "traces"
    facts = facts_of(recorded / f"ddp_gloo_cap{cap}_rank{rank}.json.gz")
    assert (facts.layout, facts.rank, facts.world, facts.backend) == ("cpu", rank, 2, "gloo")
    assert facts.framework == "DDP"
    assert [step.name for step in facts.steps] == [f"ProfilerStep#{number}" for number in (2, 3, 4)]
    assert [step.comm_kernels for step in facts.steps] == [8 if cap == 1 else 2] * 3
    assert all(step.host_wait_ns is None for step in facts.steps)
    for step in facts.steps:
        assert_identity(step)
        assert step.time_ns == step.host_ns
        assert 0.3 < step.compute_ns / step.time_ns < 1
    (move,) = facts.moved
    assert (move.kind, move.group_size, move.sized) == ("allreduce", 2, 0)
