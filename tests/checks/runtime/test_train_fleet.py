"""The training over all hosts is judged as a whole; only a late rank is a host's own."""

from __future__ import annotations

from dataclasses import replace

import pytest

from checks.runtime.train_fleet import CHECK, Seen, judge
from commcheck.jobs.said import error
from commcheck.jobs.step.limits import FleetLimits
from commcheck.jobs.step.site import site_of
from commcheck.model import Cause, Kind, Machine, Status
from commcheck.trace.causes import CAUSES, STRAGGLER
from tests.jobs.searches import HOSTS, broken, launched_by, ran, search
from tests.jobs.steps import member

SITE, LIMITS = site_of(member()), FleetLimits()


@pytest.mark.parametrize("cause", CAUSES, ids=lambda cause: cause.slug)
def test_the_group_fails_and_no_host_is_blamed(cause: Cause) -> None:
    found = search([ran(*HOSTS, good=False, cause=cause)])
    (whole,) = launched_by(CHECK).together(found, LIMITS)
    (host,) = judge(Seen(found), Machine("gpu-02"), SITE, LIMITS)
    assert (whole.status, whole.cause) == (Status.FAIL, cause)
    assert host.kind is Kind.BLOCKED
    assert "names no host" in host.reason


def test_the_host_of_a_late_rank_is_named() -> None:
    one = ran(*HOSTS, good=False, cause=STRAGGLER)
    late = replace(one, verdicts=tuple(replace(v, hosts=("gpu-03",)) for v in one.verdicts))
    (bad,) = judge(Seen(search([late])), Machine("gpu-03"), SITE, LIMITS)
    (other,) = judge(Seen(search([late])), Machine("gpu-01"), SITE, LIMITS)
    assert (bad.status, bad.cause) == (Status.FAIL, STRAGGLER)
    assert other.kind is Kind.BLOCKED


def test_every_host_passes_with_the_whole_and_knows_nothing_without_it() -> None:
    (host,) = judge(Seen(search([ran(*HOSTS)])), Machine("gpu-02"), SITE, LIMITS)
    assert host.status is Status.PASS
    lost = search([broken(*HOSTS, verdict=error("LaunchFailed", "no trace"))])
    (host,) = judge(Seen(lost), Machine("gpu-02"), SITE, LIMITS)
    assert (host.status, host.error) == (Status.ERROR, "LaunchFailed")
    (host,) = judge(Seen(search([])), Machine("gpu-02"), SITE, LIMITS)
    assert host.kind is Kind.UNDECIDABLE


def test_it_loads_and_declares_what_traces_can_show() -> None:
    assert CHECK.effects == {"load"}
    assert CHECK.causes == CAUSES
