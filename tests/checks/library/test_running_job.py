"""library.running-job: the ranks of a host's jobs are all there, once, and none is stopped."""

from __future__ import annotations

import pytest

from checks.library.running_job import CHECK
from commcheck.model import Cause, Kind, Status
from commcheck.nccl.flight_p2p import EACH_WAITS, INSIDE, PEER_MISSING
from commcheck.nccl.flight_rules import DIFFERENT, NEVER_CALLED, NOT_REACHED, SIZES, STUCK
from commcheck.nccl.running import RANK_GONE, RANK_STOPPED, RANK_TWICE
from tests.checks.conftest import Judge
from tests.checks.library.test_env import FIND, answers

JOB = "MASTER_ADDR=a MASTER_PORT=1 WORLD_SIZE=4 LOCAL_WORLD_SIZE=2"


@pytest.mark.parametrize(
    ("ranks", "stopped", "cause", "status"),
    [
        ((f"{JOB} LOCAL_RANK=0", f"{JOB} LOCAL_RANK=1"), "\n", None, Status.PASS),
        ((f"{JOB} LOCAL_RANK=1",), "\n", RANK_GONE, Status.FAIL),
        (
            (f"{JOB} LOCAL_RANK=0", f"{JOB} LOCAL_RANK=1"),
            "/proc/41001/status\n",
            RANK_STOPPED,
            Status.FAIL,
        ),
        (
            (f"{JOB} LOCAL_RANK=0", f"{JOB} LOCAL_RANK=1", f"RANK=1 {JOB} LOCAL_RANK=1 X=1"),
            "\n",
            None,
            Status.PASS,
        ),
        (("NCCL_DEBUG=WARN",), "\n", None, Status.PASS),
    ],
)
def test_ranks(
    judged: Judge, ranks: tuple[str, ...], stopped: str, cause: Cause | None, status: Status
) -> None:
    told = {**answers(*ranks), f"{FIND} 2 -name status": (stopped, 0)}
    verdict = judged(CHECK, told).verdict
    assert (verdict.cause, verdict.status) == (cause, status), verdict.reason


def test_a_rank_that_is_there_twice(judged: Judge) -> None:
    ranks = (f"{JOB} LOCAL_RANK=0", f"RANK=0 {JOB} LOCAL_RANK=1 NCCL_DEBUG=INFO")
    verdict = judged(CHECK, answers(*ranks)).verdict
    assert (verdict.cause, verdict.status) == (RANK_TWICE, Status.WARN)


def test_nobody_or_unknown(judged: Judge) -> None:
    assert judged(CHECK, answers()).verdict.kind is Kind.NOT_APPLICABLE
    assert judged(CHECK, {}).verdict.kind is Kind.UNDECIDABLE


def test_causes_of_dumps_are_declared_here() -> None:
    """They are found by ``analyze hang``, tested with the dumps."""
    assert {NEVER_CALLED, DIFFERENT, SIZES, STUCK, NOT_REACHED} <= set(CHECK.causes)
    assert {PEER_MISSING, EACH_WAITS, INSIDE} <= set(CHECK.causes)
