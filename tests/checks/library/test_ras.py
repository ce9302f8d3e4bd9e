"""library.ras: what the RAS service of a running job answers, twice."""

from __future__ import annotations

import pytest

from checks.library.ras import CHECK, Limits, Seen, Want, judge
from commcheck.check import Span, Unread, Watched
from commcheck.model import Cause, Host, Kind, Machine, Origin, Status, Verdict, Wanted
from commcheck.nccl.processes import Process, Users
from commcheck.nccl.ras import Report
from commcheck.nccl.ras_rules import BEHIND, DEAD, ERROR, GONE, NO_PROGRESS, SLOW, STATES
from commcheck.plan import Asked, requests
from tests.checks.conftest import Judge
from tests.checks.library.test_env import answers
from tests.nccl.test_ras import report

MACHINE = Machine("gpu-01", "gpu-roce")
ASKED = Want(Wanted(True, Origin("inventory")))
JOB = Users((Process(41000, (("RANK", "0"), ("WORLD_SIZE", "16"))),))


def said(first: Report, last: Report, seconds: float, users: Users | Unread = JOB) -> Verdict:
    found = judge(Seen(Watched(Span(first, last, seconds)), users), MACHINE, ASKED, Limits(seconds))
    assert isinstance(found, tuple)
    return found[0]


@pytest.mark.parametrize(
    ("first", "last", "seconds", "cause"),
    [
        ("ras-status-incomplete-2.28.9.txt", "ras-status-dead-2.28.9.txt", 30, DEAD),
        ("ras-status-incomplete-2.28.9.txt", "ras-status-incomplete-2.28.9.txt", 30, GONE),
        ("ras-2.29.7.json", "ras-2.29.7.json", 5, ERROR),
        ("ras-moving-poll0-2.28.9.txt", "ras-moving-poll1-2.28.9.txt", 2, None),
    ],
)
def test_two_answers(first: str, last: str, seconds: float, cause: Cause | None) -> None:
    verdict = said(report(first), report(last), seconds)
    assert verdict.cause is cause
    assert verdict.status is (Status.FAIL if cause else Status.PASS)


def test_what_two_answers_cannot_tell() -> None:
    stuck = report("ras-stuck-poll0-2.28.9.txt")
    assert said(stuck, stuck, 60).kind is Kind.UNDECIDABLE
    healthy = report("ras-status-healthy-2.28.9.txt")
    assert said(healthy, healthy, 2).kind is Kind.UNDECIDABLE


def test_causes_of_longer_looks_are_declared_here() -> None:
    """They need three reports, or minutes: tested with ``analyze hang``."""
    assert {BEHIND, STATES, NO_PROGRESS, SLOW} <= set(CHECK.causes)


def test_nobody_answers(judged: Judge) -> None:
    refused = {"curl": ("\n", 7)}
    idle = judged(CHECK, {**answers(), **refused}, ras=True).verdict
    assert idle.kind is Kind.NOT_APPLICABLE
    silent = judged(CHECK, {**answers("NCCL_DEBUG=WARN"), **refused}, ras="true").verdict
    assert (silent.kind, silent.rule) == (Kind.UNDECIDABLE, "RAS-001")
    assert "nothing listens" in silent.reason
    missing = judged(CHECK, answers("NCCL_DEBUG=WARN"), ras=True).verdict
    assert (missing.kind, missing.rule) == (Kind.UNDECIDABLE, "RAS-001")


def test_only_hosts_that_were_named_are_asked(judged: Judge) -> None:
    """A gather concerns the whole job: a thousand hosts must not each start one."""
    name = "nccl-ras/ras-status-dead-2.28.9.txt"
    told = {**answers("NCCL_DEBUG=WARN"), "curl": (name, 0)}
    assert judged(CHECK, told).verdict.kind is Kind.NOT_APPLICABLE
    assert requests(Host("gpu-01"), MACHINE, [Asked(CHECK)]) == ()


def test_by_the_engine(judged: Judge) -> None:
    name = "nccl-ras/ras-status-dead-2.28.9.txt"
    verdict = judged(CHECK, {**answers("NCCL_DEBUG=WARN"), "curl": (name, 0)}, ras=True).verdict
    assert (verdict.cause, verdict.rule) == (DEAD, "RAS-002")
