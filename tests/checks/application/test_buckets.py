"""application.buckets: bucket sizes in the flags of the jobs that run on a host."""

from __future__ import annotations

import pytest

from checks.application.buckets import CHECK
from commcheck.frameworks.causes import COPIES, TOO_LARGE, TOO_SMALL, UNIT, WIRE_BOUND
from commcheck.model import Cause, Kind, Status
from tests.checks.application.jobs import MEGATRON, answers
from tests.checks.conftest import Judge


@pytest.mark.parametrize(
    ("line", "cause", "status"),
    [
        (MEGATRON, None, Status.PASS),
        (f"{MEGATRON} --ddp-bucket-size 40000000", None, Status.PASS),
        (f"{MEGATRON} --ddp-bucket-size 25", UNIT, Status.FAIL),
        (f"{MEGATRON} --ddp-bucket-size=500000", TOO_SMALL, Status.WARN),
        ("train.py --ddp_bucket_cap_mb 0.25", TOO_SMALL, Status.WARN),
        ("train.py --ddp_bucket_cap_mb=2000", TOO_LARGE, Status.WARN),
    ],
)
def test_sizes(judged: Judge, line: str, cause: Cause | None, status: Status) -> None:
    verdict = judged(CHECK, answers(line)).verdict
    assert (verdict.cause, verdict.status) == (cause, status), verdict.reason


def test_ranks_alike_are_judged_once(judged: Judge) -> None:
    finding = judged(CHECK, answers(*[f"{MEGATRON} --ddp-bucket-size 25"] * 8))
    assert "pid 41000" in finding.verdict.reason


def test_nobody_nothing_or_unknown(judged: Judge) -> None:
    assert judged(CHECK, answers()).verdict.kind is Kind.NOT_APPLICABLE
    assert judged(CHECK, answers("serve.py --model x")).verdict.kind is Kind.NOT_APPLICABLE
    assert judged(CHECK, {}).verdict.kind is Kind.UNDECIDABLE
    named = judged(CHECK, answers("train.py --deepspeed_config conf/ds.json")).verdict
    assert named.kind is Kind.UNDECIDABLE
    assert "commcheck analyze config conf/ds.json" in named.reason


def test_causes_of_the_analyses_are_declared_here() -> None:
    """They are found by ``analyze bucket`` and ``analyze config``, tested with their files."""
    assert {WIRE_BOUND, COPIES} <= set(CHECK.causes)
