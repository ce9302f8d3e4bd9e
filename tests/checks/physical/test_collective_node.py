"""Inside a host the run's own verdicts are the host's."""

from __future__ import annotations

import pytest

from checks.physical.collective_node import CHECK, Seen, judge
from commcheck.jobs.causes import SIGNATURES
from commcheck.jobs.collective import NodeLimits
from commcheck.jobs.said import error
from commcheck.loads import site_of
from commcheck.model import Cause, Host, Kind, Machine, Status
from tests.jobs.searches import broken, ran, search

SITE = site_of(Host("gpu-01"), "gpu-roce")
LIMITS = NodeLimits()


@pytest.mark.parametrize("cause", SIGNATURES, ids=lambda cause: cause.slug)
def test_a_slow_host_fails_for_the_signature_of_its_own_run(cause: Cause) -> None:
    found = search([ran("gpu-01"), ran("gpu-02", good=False, cause=cause)])
    (bad,) = judge(Seen(found), Machine("gpu-02"), SITE, LIMITS)
    (good,) = judge(Seen(found), Machine("gpu-01"), SITE, LIMITS)
    assert (bad.status, bad.cause) == (Status.FAIL, cause)
    assert good.status is Status.PASS


def test_it_declares_what_a_sweep_can_show() -> None:
    assert {id(cause) for cause in CHECK.causes} == {id(cause) for cause in SIGNATURES}
    assert CHECK.effects == {"load"}


def test_a_run_that_did_not_start_is_an_error_and_none_at_all_undecidable() -> None:
    found = search([broken("gpu-01", verdict=error("LaunchFailed", "no all_reduce_perf"))])
    (lost,) = judge(Seen(found), Machine("gpu-01"), SITE, LIMITS)
    (none,) = judge(Seen(found), Machine("gpu-02"), SITE, LIMITS)
    assert (lost.status, lost.error) == (Status.ERROR, "LaunchFailed")
    assert none.kind is Kind.UNDECIDABLE
