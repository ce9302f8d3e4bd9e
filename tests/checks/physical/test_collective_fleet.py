"""The run of all hosts is judged as a whole, and blames nobody by itself."""

from __future__ import annotations

import pytest

from checks.physical.collective_fleet import CHECK, Seen, judge
from commcheck.jobs.causes import SIGNATURES
from commcheck.jobs.collective import Limits
from commcheck.jobs.said import error, together
from commcheck.loads import site_of
from commcheck.model import Cause, Host, Kind, Machine, Status
from tests.jobs.searches import HOSTS, broken, ran, search

SITE = site_of(Host("gpu-01"), "gpu-roce")
LIMITS = Limits()


@pytest.mark.parametrize("cause", SIGNATURES, ids=lambda cause: cause.slug)
def test_the_group_fails_and_no_host_is_blamed(cause: Cause) -> None:
    found = search([ran(*HOSTS, good=False, cause=cause)])
    (whole,) = together("fleet", found)
    (host,) = judge(Seen(found), Machine("gpu-02"), SITE, LIMITS)
    assert (whole.status, whole.cause) == (Status.FAIL, cause)
    assert host.kind is Kind.BLOCKED
    assert "names no host" in host.reason


def test_it_declares_what_a_sweep_can_show() -> None:
    assert {id(cause) for cause in CHECK.causes} == {id(cause) for cause in SIGNATURES}


def test_every_host_passes_with_the_whole_and_knows_nothing_without_it() -> None:
    (host,) = judge(Seen(search([ran(*HOSTS)])), Machine("gpu-02"), SITE, LIMITS)
    assert host.status is Status.PASS
    lost = search([broken(*HOSTS, verdict=error("RunTimedOut", "it hung"))])
    (host,) = judge(Seen(lost), Machine("gpu-02"), SITE, LIMITS)
    assert (host.status, host.error) == (Status.ERROR, "RunTimedOut")
    (host,) = judge(Seen(search([])), Machine("gpu-02"), SITE, LIMITS)
    assert host.kind is Kind.UNDECIDABLE
