"""What every check that searches among hosts must say of the object at fault, and of what is open.

Tests of such a check import these, and hand the check in.
"""

from __future__ import annotations

from typing import Any

from commcheck.check import AnyCheck
from commcheck.jobs.causes_places import (
    BAD_HOST,
    BAD_LEAF,
    BAD_PATH,
    BAD_PLANE,
    BAD_RAIL,
    FLEET,
    PARALLEL_ONLY,
)
from commcheck.jobs.job import Search
from commcheck.jobs.said import error
from commcheck.loads import site_of
from commcheck.model import Cause, Host, Kind, Machine, Status, Verdict
from tests.jobs.searches import HOSTS, at_fault, broken, launched_by, ran, search, undecided

OBJECTS: dict[str, tuple[tuple[str, ...], int | None]] = {
    "host": (("gpu-03",), None),
    "rail": (("gpu-03",), 2),
    "plane": (HOSTS, 1),
    "path": (("gpu-01", "gpu-03"), None),
    "leaf": (("gpu-03", "gpu-04"), None),
    "fabric": (HOSTS, None),
    "parallel": (("gpu-01", "gpu-02"), None),
}
PLACES = {
    "host": BAD_HOST,
    "rail": BAD_RAIL,
    "plane": BAD_PLANE,
    "path": BAD_PATH,
    "leaf": BAD_LEAF,
    "fabric": FLEET,
    "parallel": PARALLEL_ONLY,
}


def said_of(check: AnyCheck, found: Search, host: str) -> Verdict:
    """The check's verdict on one host."""
    limits: Any = check.limits()
    site = site_of(Host(host), "gpu-roce")
    return check.verdicts(check.seen(found), Machine(host), site, limits)[0]


def names_it_and_blames_only_hosts(check: AnyCheck, what: str, cause: Cause) -> None:
    """The group names the object; a host fails only where it is the object."""
    hosts, rail = OBJECTS[what]
    good = [host for host in HOSTS if what in ("path", "parallel") or host not in hosts]
    runs = [ran("gpu-01", "gpu-02"), ran("gpu-03", "gpu-04")]
    found = search(runs, located=at_fault(what, *hosts, rail=rail, good=good))
    (whole,) = launched_by(check).together(found, check.limits())
    assert whole.cause is cause
    assert any(each is cause for each in check.causes)
    assert whole.status is (Status.WARN if what == "parallel" else Status.FAIL)
    said = {host: said_of(check, found, host) for host in HOSTS}
    blamed = {host for host, verdict in said.items() if verdict.status is Status.FAIL}
    assert blamed == (set(hosts) if what in ("host", "rail") else set())
    assert all(said[host].status is Status.PASS for host in good)
    held = {host for host in HOSTS if host not in good} - blamed
    assert {said[host].kind for host in held} <= {Kind.BLOCKED}


def says_which_run_would_decide(check: AnyCheck) -> None:
    """What is open is undecidable, for the group and for the host."""
    runs = [ran("gpu-01", "gpu-02", good=False, cause=FLEET)]
    found = search(runs, located=undecided("gpu-01", "gpu-02"))
    (whole,) = launched_by(check).together(found, check.limits())
    assert whole.kind is Kind.UNDECIDABLE
    assert "this run would decide: gpu-01 + gpu-04" in whole.reason
    assert said_of(check, found, "gpu-01").kind is Kind.UNDECIDABLE


def says_why_runs_proved_nothing(check: AnyCheck) -> None:
    """A host whose runs proved nothing is in error for their reason; one without runs is open."""
    found = search([broken("gpu-01", "gpu-02", verdict=error("NotMultiRank", "built without MPI"))])
    host = said_of(check, found, "gpu-01")
    assert (host.status, host.error) == (Status.ERROR, "NotMultiRank")
    assert said_of(check, found, "gpu-03").kind is Kind.UNDECIDABLE
