"""The step inside a host is judged by the ladder of traces, and is the host's own."""

from __future__ import annotations

import pytest

from checks.runtime.train_step import CHECK, Seen, judge
from commcheck.jobs.said import error
from commcheck.jobs.step.limits import StepLimits
from commcheck.jobs.step.site import site_of
from commcheck.model import Cause, Kind, Machine, Status
from commcheck.trace.causes import CAUSES
from tests.jobs.searches import broken, ran, search
from tests.jobs.steps import member

SITE, LIMITS = site_of(member()), StepLimits()


@pytest.mark.parametrize("cause", CAUSES, ids=lambda cause: cause.slug)
def test_a_host_fails_for_what_its_own_step_shows(cause: Cause) -> None:
    found = search([ran("gpu-01"), ran("gpu-02", good=False, cause=cause)])
    (bad,) = judge(Seen(found), Machine("gpu-02"), SITE, LIMITS)
    (good,) = judge(Seen(found), Machine("gpu-01"), SITE, LIMITS)
    assert (bad.status, bad.cause) == (Status.FAIL, cause)
    assert good.status is Status.PASS


def test_it_loads_and_declares_what_traces_can_show() -> None:
    assert CHECK.effects == {"load"}
    assert CHECK.causes == CAUSES


def test_no_step_is_never_a_pass() -> None:
    found = search([broken("gpu-01", verdict=error("LaunchFailed", "no trace"))])
    (lost,) = judge(Seen(found), Machine("gpu-01"), SITE, LIMITS)
    (none,) = judge(Seen(found), Machine("gpu-02"), SITE, LIMITS)
    assert (lost.status, lost.error) == (Status.ERROR, "LaunchFailed")
    assert none.kind is Kind.UNDECIDABLE
