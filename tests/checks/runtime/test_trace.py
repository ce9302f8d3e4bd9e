"""The check of traces that a job left on a host, and what it can find."""

from __future__ import annotations

import base64
import subprocess
from pathlib import Path

import pytest

from checks.runtime.trace import CHECK
from commcheck.errors import CommandFailed, ParseError
from commcheck.model import Finding, Kind, Machine, Status
from commcheck.trace.causes import (
    CAUSES,
    CONTEXT_PARALLEL,
    EXPERT_PARALLEL,
    EXPOSED,
    GATHER_BOUND,
    HOST_PAUSE,
    IDLE,
    INPUT_BOUND,
    LAUNCH_BOUND,
    NOT_OVERLAPPED,
    PIPELINE_BUBBLE,
    SLOW_LINK,
    SLOW_WIRE,
    SMALL_COLLECTIVES,
    STRAGGLER,
    TENSOR_PARALLEL,
)
from commcheck.trace.on_host import MOST, PACKED_BYTES, SCRIPT, parse
from tests.checks.conftest import Judge
from tests.jobs.steps import output
from tests.trace.expected import made

SETTINGS = {
    STRAGGLER: ("CLOCK", "npu-smi info -t common", "DistributedSampler"),
    INPUT_BOUND: ("num_workers", "iostat"),
    HOST_PAUSE: ("py-spy", "--manual-gc"),
    LAUNCH_BOUND: ("reduce-overhead",),
    IDLE: ("py-spy", "TASK_QUEUE_ENABLE"),
    GATHER_BOUND: ("stage3_prefetch_bucket_size", "zero_hpz_partition_size"),
    SMALL_COLLECTIVES: ("bucket_cap_mb", "reduce_bucket_size", "--ddp-bucket-size"),
    NOT_OVERLAPPED: ("bucket_cap_mb", "overlap_comm", "--overlap-grad-reduce", "backward_prefetch"),
    SLOW_WIRE: ("commcheck run", "all_reduce_perf", "all_reduce_test"),
    SLOW_LINK: ("hccn_tool -i <NPU> -stat -g", "-optical -g", "commcheck run -i"),
    TENSOR_PARALLEL: ("--tensor-model-parallel-size",),
    EXPERT_PARALLEL: ("--expert-model-parallel-size", "--overlap-moe-expert-parallel-comm", "flex"),
    CONTEXT_PARALLEL: ("--context-parallel-size", "--hierarchical-context-parallel-sizes"),
    PIPELINE_BUBBLE: ("--global-batch-size",),
    EXPOSED: ("bucket_cap_mb", "no_sync"),
}


SMALL = {"layers": 4, "kernels": 3, "steps": 3, "ranks": 2}


def carried(named: Path | str) -> str:
    """What the script on a host prints of a folder or pattern."""
    words = ["sh", "-c", SCRIPT, "sh", str(named)]
    return subprocess.run(words, check=True, capture_output=True, text=True).stdout


def found(judged: Judge, named: Path | str) -> Finding:
    machine = Machine("gpu-01", "gpu-roce", traces="/data/traces")
    answers = {"profiler-traces": (carried(named) + "\n", 0)}
    return judged(CHECK, answers, machine=machine, traces="/data/traces")


def test_a_host_without_a_folder_of_traces_says_what_to_do(judged: Judge) -> None:
    verdict = judged(CHECK, {}).verdict
    assert verdict.kind is Kind.NOT_APPLICABLE
    assert "commcheck analyze trace" in verdict.reason


@pytest.mark.parametrize("gz", [False, True])
def test_the_traces_of_a_folder_are_judged_as_one_job(
    judged: Judge, tmp_path: Path, gz: bool
) -> None:
    made(tmp_path, **SMALL, gz=gz)
    (tmp_path / "trace.expected.json").rename(tmp_path / "expected.json")
    (tmp_path / "ds_config.json").write_text('{"zero_optimization": {}}')
    whole = found(judged, tmp_path).verdict
    assert whole.status is Status.PASS, whole
    assert [figure.form for figure in whole.figures] == ["lanes"]
    (tmp_path / "rank9.json").write_text('{"traceEvents": [')
    assert found(judged, tmp_path).verdict.kind is Kind.UNDECIDABLE
    late = tmp_path / "late"
    made(late, **SMALL, straggler=1, straggler_factor=3.0)
    assert found(judged, f"{late}/*_rank*").verdict.cause is STRAGGLER


def test_what_is_no_trace_or_too_large_is_never_a_pass(judged: Judge, tmp_path: Path) -> None:
    none = found(judged, tmp_path).verdict
    assert none.kind is Kind.UNDECIDABLE
    assert "no file of that name" in none.reason
    (tmp_path / "rank0.json").write_text("{}")
    assert "no traceEvents" in found(judged, tmp_path).verdict.reason
    large = base64.b64encode(bytes(PACKED_BYTES + 1)).decode()
    machine = Machine("gpu-01", "gpu-roce", traces="/data/traces")
    answers = {"profiler-traces": (f"trace /a b.json\n{large}\nend\n", 0)}
    verdict = judged(CHECK, answers, machine=machine, traces="/data/traces").verdict
    assert verdict.kind is Kind.UNDECIDABLE
    assert "/a b.json is larger than 8 MiB when packed" in verdict.reason


def test_only_the_newest_are_carried_and_cut_ones_refused(tmp_path: Path) -> None:
    for number in range(MOST + 3):
        (tmp_path / f"rank{number}.json").write_text("x")
    assert len(parse(output(carried(tmp_path))).packed) == MOST
    with pytest.raises(ParseError):
        parse(output("trace /a.json\nAAAA"))
    with pytest.raises(CommandFailed):
        parse(output(""))


def test_every_cause_names_the_settings_that_mend_it() -> None:
    assert CHECK.causes == CAUSES == tuple(SETTINGS)
    for cause, settings in SETTINGS.items():
        commands = " ".join(each.command for each in cause.remedies)
        assert [word for word in settings if word not in commands] == [], cause.slug
