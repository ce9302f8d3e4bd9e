"""The check of traces on a host: it has none, and says what to do; what it can find is declared."""

from __future__ import annotations

from checks.runtime.trace import CHECK, judge
from commcheck.check import Nothing
from commcheck.model import Kind, Machine
from commcheck.trace.causes import (
    CAUSES,
    EXPOSED,
    GATHER_BOUND,
    LAUNCH_BOUND,
    NOT_OVERLAPPED,
    PIPELINE_BUBBLE,
    SLOW_WIRE,
    SMALL_COLLECTIVES,
    STRAGGLER,
    TENSOR_PARALLEL,
)
from commcheck.trace.limits import Limits

SETTINGS = {
    STRAGGLER: ("CLOCK", "DistributedSampler"),
    LAUNCH_BOUND: ("reduce-overhead",),
    GATHER_BOUND: ("stage3_prefetch_bucket_size", "zero_hpz_partition_size"),
    SMALL_COLLECTIVES: ("bucket_cap_mb", "reduce_bucket_size", "--ddp-bucket-size"),
    NOT_OVERLAPPED: ("bucket_cap_mb", "overlap_comm", "--overlap-grad-reduce", "backward_prefetch"),
    SLOW_WIRE: ("commcheck run", "all_reduce_perf"),
    TENSOR_PARALLEL: ("--tensor-model-parallel-size",),
    PIPELINE_BUBBLE: ("--global-batch-size",),
    EXPOSED: ("bucket_cap_mb", "no_sync"),
}


def test_a_host_alone_has_no_trace() -> None:
    verdict = judge(Nothing(), Machine("gpu-01"), Nothing(), Limits())
    assert verdict.kind is Kind.NOT_APPLICABLE
    assert "commcheck analyze trace" in verdict.reason


def test_every_cause_names_the_settings_that_mend_it() -> None:
    assert CHECK.causes == CAUSES == tuple(SETTINGS)
    for cause, settings in SETTINGS.items():
        commands = " ".join(each.command for each in cause.remedies)
        assert [word for word in settings if word not in commands] == [], cause.slug
