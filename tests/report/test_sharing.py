"""What the hosts of a fault have in common, what follows from it, and what speaks against it."""

from __future__ import annotations

from dataclasses import replace

import pytest

from commcheck.diagnose import Group, diagnose
from commcheck.model import Finding, Kind, Result, Status, Verdict
from commcheck.report import events, html, replay
from commcheck.report.record import Record
from tests.report.runs import CHECKS, PASS, PFC_OFF, info, plan, result

HOSTS = tuple(f"node-{number:02d}" for number in range(1, 13))
PFC = "physical.pfc-enabled"
BAD = Verdict(status=Status.FAIL, reason="off", cause=PFC_OFF, remedies=PFC_OFF.remedies)


def on(host: str, subject: str) -> Result:
    finding = Finding(check=PFC, host=host, subject=subject, verdict=BAD)
    return Result(check=PFC, host=host, findings=(finding,))


def run(
    *special: Result,
    groups: dict[str, tuple[str, ...]] | None = None,
    hosts: tuple[str, ...] = HOSTS,
    checks: tuple[str, ...] = CHECKS,
) -> Record:
    cases = {(each.host, each.check): each for each in special}
    whole = [
        cases.pop((host, check)) if (host, check) in cases else result(host, check, PASS)
        for host in hosts
        for check in checks
    ]
    planned = replace(plan(hosts, checks), groups=groups or {})
    return Record(info(), planned, (*whole, *cases.values()), state="complete")


def cause(record: Record) -> Group:
    found = diagnose(record).cause
    assert found is not None
    return found


RACKS = {
    "all_gpu": HOSTS,
    "rack_a": HOSTS[:4],
    "rack_b": HOSTS[4:8],
    "leaf sw-7": HOSTS[2:6],
}


@pytest.mark.parametrize(
    ("record", "kinds", "words"),
    [
        (
            run(on("node-03", "")),
            ["host"],
            "one host: node-03; not on the 11 others that were judged",
        ),
        (
            run(on("node-03", ""), hosts=HOSTS[2:4]),
            ["host"],
            "one host: node-03; not on the one other that was judged",
        ),
        (run(on("node-03", ""), hosts=("node-03",)), [], ""),
        (
            run(*[on(host, "mlx5_2") for host in HOSTS]),
            ["everything", "rail"],
            "every host that was judged, all 12",
        ),
        (
            run(*[on(host, "") for host in HOSTS[:4]], groups=RACKS),
            ["exactly"],
            "exactly the 4 hosts of group rack_a",
        ),
        (
            run(*[on(host, "") for host in HOSTS[2:6]], groups=RACKS),
            ["exactly"],
            "exactly the 4 hosts of leaf sw-7",
        ),
        (
            run(*[on(host, "mlx5_2") for host in HOSTS[:2]], groups=RACKS),
            ["within", "rail"],
            "all are of group rack_a: 2 of its 4 hosts",
        ),
        (
            run(*[on(host, "") for host in HOSTS[3:9:2]], groups=RACKS),
            ["nothing"],
            "no group, switch, rail or version sets these hosts apart",
        ),
    ],
)
def test_what_its_hosts_share(record: Record, kinds: list[str], words: str) -> None:
    shares = cause(record).shares
    assert [share.kind for share in shares] == kinds
    assert any(share.words.en.startswith(words) for share in shares) or not words


def test_one_driver_version_is_told_from_the_others() -> None:
    def version(host: str) -> Result:
        driver = "535.54" if host in HOSTS[5:8] else "550.90"
        return result(host, "physical.nic-firmware", replace(PASS, measured={"driver": driver}))

    record = run(*[on(host, "") for host in HOSTS[5:8]], *[version(host) for host in HOSTS])
    (share,) = cause(record).shares
    assert share.words.en == "exactly the 3 hosts of driver 535.54 (physical.nic-firmware)"
    assert "535.54" in share.words.zh


def test_a_group_is_no_explanation_where_others_of_it_are_fine() -> None:
    """All hosts of the fault are in the group, but so is nearly everybody."""
    groups = {"rack": HOSTS[:10]}
    assert [share.kind for share in cause(run(on("node-01", ""), on("node-02", ""),
                                              groups=groups)).shares] == ["nothing"]  # fmt: skip


# --- consequences -------------------------------------------------------------------------------

WIRE = "physical.collective-node"


def with_wire(verdict: Verdict) -> Record:
    checks = (*CHECKS, WIRE)
    record = run(on("node-03", "mlx5_2"), result("node-03", WIRE, verdict), checks=checks)
    asked = tuple(
        replace(each, explained_by=(PFC_OFF.slug,)) if each.id == WIRE else each
        for each in record.plan.checks
    )
    return replace(record, plan=replace(record.plan, checks=asked))


FOLDED = Verdict(
    status=Status.SKIP,
    kind=Kind.BLOCKED,
    reason=f"consequence of {PFC} ({PFC_OFF.slug}) on node-03 mlx5_2: busbw 12 GB/s, want 42",
    follows=PFC_OFF.slug,
)


def test_a_consequence_stands_under_its_cause_and_is_not_counted() -> None:
    record = with_wire(FOLDED)
    found = diagnose(record)
    assert [group.check for group in found.groups] == [PFC]
    (follows,) = cause(record).follows
    assert (follows.check, follows.hosts) == (WIRE, ("node-03",))
    assert [words.en for words in cause(record).speaks_for] == [
        f"{WIRE} suffers where it would (1 host)"
    ]
    page = html.render(record).decode()
    assert "Follows from it, and is not counted" in page
    assert FOLDED.reason in page


def test_what_passes_though_it_should_suffer_speaks_against() -> None:
    against = cause(with_wire(PASS)).speaks_against
    assert [words.en for words in against] == [
        f"{WIRE} passes on 1 of them, though it would suffer from this"
    ]
    assert cause(run(on("node-03", ""))).speaks_against == ()


def denying(record: Record) -> Record:
    """The firmware's check speaks against PFC as the cause, where it passes."""
    asked = tuple(
        replace(each, contradicts=(PFC_OFF.slug,)) if each.id == CHECKS[3] else each
        for each in record.plan.checks
    )
    return replace(record, plan=replace(record.plan, checks=asked))


def test_a_pass_of_what_contradicts_speaks_against() -> None:
    unknown = Verdict(status=Status.SKIP, kind=Kind.UNDECIDABLE, reason="nobody knows")
    record = denying(
        run(on("node-03", ""), on("node-04", ""), result("node-04", CHECKS[3], unknown))
    )
    assert [words.en for words in cause(record).speaks_against] == [
        f"{CHECKS[3]} passes on 1 of them, so what this leads to is not seen there"
    ]


def test_the_stream_keeps_edges_groups_and_consequences() -> None:
    record = denying(with_wire(FOLDED))
    record = replace(record, plan=replace(record.plan, groups=RACKS))
    lines = [events.encode(event).decode() for event in events.events_of(record)]
    again = replay.record_from_events(lines)
    assert again.plan == record.plan
    assert diagnose(again).groups == diagnose(record).groups


def test_no_fault_says_what_was_proven() -> None:
    assert [words.en for words in diagnose(run()).proven] == [
        "physical: 48 of 48 cases read and right (4 checks), 12 hosts free of fault",
        "library: 12 of 12 cases read and right (1 check), 12 hosts free of fault",
        "runtime: 12 of 12 cases read and right (1 check), 12 hosts free of fault",
    ]
