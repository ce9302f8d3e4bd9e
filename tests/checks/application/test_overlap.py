"""application.overlap: the flags that let a running job's communication hide."""

from __future__ import annotations

import pytest

from checks.application.overlap import CHECK
from commcheck.frameworks.causes import (
    CONNECTIONS,
    NO_EFFECT,
    OFF,
    SYNCHRONOUS,
    UNUSED,
)
from commcheck.frameworks.causes_fsdp import ONE_UNIT, PREFETCH_OFF
from commcheck.model import Cause, Kind, Status
from tests.checks.application.jobs import MEGATRON, answers
from tests.checks.conftest import Judge

BARE = "pretrain_gpt.py --micro-batch-size 1"
ONE = "WORLD_SIZE=16 CUDA_DEVICE_MAX_CONNECTIONS=1"


@pytest.mark.parametrize(
    ("line", "environ", "cause"),
    [
        (MEGATRON, "WORLD_SIZE=16", None),
        (BARE, "WORLD_SIZE=16", OFF),
        (MEGATRON, "WORLD_SIZE=16 ASCEND_LAUNCH_BLOCKING=1", SYNCHRONOUS),
        (f"{BARE} --tensor-model-parallel-size 8 --pipeline-model-parallel-size 2", ONE, None),
        (f"{BARE} --overlap-param-gather", "WORLD_SIZE=1", NO_EFFECT),
        # It runs: then it is on Blackwell, or a version that does not care.
        (f"{MEGATRON} --tensor-model-parallel-size 8", "WORLD_SIZE=16", None),
        (f"{BARE} --use-torch-fsdp2", ONE, CONNECTIONS),
        ("train.py --fsdp full_shard --fsdp_backward_prefetch NO_PREFETCH", "X=1", PREFETCH_OFF),
        ("train.py --ddp_find_unused_parameters True", "X=1", UNUSED),
    ],
)
def test_overlap(judged: Judge, line: str, environ: str, cause: Cause | None) -> None:
    verdict = judged(CHECK, answers(line, environ=environ)).verdict
    assert (verdict.cause, verdict.status) == (
        cause,
        Status.WARN if cause else Status.PASS,
    ), verdict.reason


def test_nobody_or_unknown(judged: Judge) -> None:
    assert judged(CHECK, answers()).verdict.kind is Kind.NOT_APPLICABLE
    assert judged(CHECK, {}).verdict.kind is Kind.UNDECIDABLE
    unknown = judged(CHECK, answers(BARE, environ="NCCL_DEBUG=INFO")).verdict
    assert unknown.kind is Kind.UNDECIDABLE


def test_causes_of_files_are_declared_here() -> None:
    """They are found by ``analyze config``, and tested with its files."""
    assert SYNCHRONOUS in CHECK.causes
    assert ONE_UNIT in CHECK.causes
