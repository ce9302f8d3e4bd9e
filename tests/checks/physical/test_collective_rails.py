"""Of rails the slow one is named, on a host or on all of them."""

from __future__ import annotations

import pytest

from checks.physical.collective_rails import CHECK, Seen, judge
from commcheck.jobs.causes import (
    BAD_HOST,
    BAD_LEAF,
    BAD_PATH,
    BAD_PLANE,
    BAD_RAIL,
    FLEET,
    PARALLEL_ONLY,
)
from commcheck.jobs.collective import Limits, error
from commcheck.loads import site_of
from commcheck.model import Host, Kind, Machine, Status
from tests.jobs.searches import HOSTS, at_fault, broken, launched_by, ran, search, undecided

JOB = launched_by(CHECK)

SITE = site_of(Host("gpu-01"), "gpu-roce")
LIMITS = Limits()
OBJECTS = {
    "host": (BAD_HOST, ("gpu-03",), None),
    "rail": (BAD_RAIL, ("gpu-03",), 2),
    "plane": (BAD_PLANE, HOSTS, 1),
    "path": (BAD_PATH, ("gpu-01", "gpu-03"), None),
    "leaf": (BAD_LEAF, ("gpu-03", "gpu-04"), None),
    "fabric": (FLEET, HOSTS, None),
    "parallel": (PARALLEL_ONLY, ("gpu-01", "gpu-02"), None),
}


@pytest.mark.parametrize("what", OBJECTS)
def test_the_object_at_fault_is_named_and_only_a_host_is_blamed(what: str) -> None:
    cause, hosts, rail = OBJECTS[what]
    good = [host for host in HOSTS if what in ("path", "parallel") or host not in hosts]
    runs = [ran("gpu-01", "gpu-02"), ran("gpu-03", "gpu-04")]
    found = search(runs, located=at_fault(what, *hosts, rail=rail, good=good))
    (whole,) = JOB.together(found, LIMITS)
    assert whole.cause is cause
    assert whole.status is (Status.WARN if what == "parallel" else Status.FAIL)
    said = {host: judge(Seen(found), Machine(host), SITE, LIMITS)[0] for host in HOSTS}
    blamed = {host for host, verdict in said.items() if verdict.status is Status.FAIL}
    assert blamed == (set(hosts) if what in ("host", "rail") else set())
    assert all(said[host].status is Status.PASS for host in good)
    held = {host for host in HOSTS if host not in good} - blamed
    assert {said[host].kind for host in held} <= {Kind.BLOCKED}


def test_it_declares_every_place() -> None:
    assert {id(cause) for cause, _, _ in OBJECTS.values()} <= {id(each) for each in CHECK.causes}
    assert CHECK.effects == {"load"}


def test_what_is_open_says_which_run_would_decide() -> None:
    runs = [ran("gpu-01", "gpu-02", good=False, cause=FLEET)]
    found = search(runs, located=undecided("gpu-01", "gpu-02"))
    (whole,) = JOB.together(found, LIMITS)
    assert whole.kind is Kind.UNDECIDABLE
    assert "this run would decide: gpu-01 + gpu-04" in whole.reason
    (host,) = judge(Seen(found), Machine("gpu-01"), SITE, LIMITS)
    assert host.kind is Kind.UNDECIDABLE


def test_a_host_whose_runs_proved_nothing_says_why() -> None:
    found = search([broken("gpu-01", "gpu-02", verdict=error("NotMultiRank", "built without MPI"))])
    (host,) = judge(Seen(found), Machine("gpu-01"), SITE, LIMITS)
    assert (host.status, host.error) == (Status.ERROR, "NotMultiRank")
    (other,) = judge(Seen(found), Machine("gpu-03"), SITE, LIMITS)
    assert other.kind is Kind.UNDECIDABLE
