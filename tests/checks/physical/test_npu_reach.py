"""physical.npu-reach: what pings between NPUs say, and of whom."""

from __future__ import annotations

from dataclasses import replace

import pytest

from checks.physical.npu_reach import CHECK, Seen, judge
from commcheck.check import Nothing
from commcheck.command import Output
from commcheck.errors import Unjudgeable
from commcheck.jobs.guards import asked_by
from commcheck.jobs.job import Answered, Member, Ran
from commcheck.jobs.npu_reach import UNREACHED
from commcheck.jobs.outcomes import Run
from commcheck.loads import site_of
from commcheck.model import Accelerator, Host, Kind, Machine, Status
from tests.checks.physical.npu_answers import RECORDED, told
from tests.jobs.searches import HOSTS, at_fault, launched_by, search

JOB, LIMITS = launched_by(CHECK), Nothing()
SITE = site_of(Host("gpu-01"), "ascend")
RUN = Run(("gpu-01", "gpu-02"))
NPUS = tuple(Accelerator(n, "ascend") for n in range(2))


def said(*answers: str) -> Output:
    return Output(told(*answers)[0])


def member(number: int, *links: str, vnic: str = "hccs-ping-unsupported") -> Member:
    name = f"gpu-{number:02d}"
    addresses = [f"ipaddr:10.20.{npu}.{number}\nnetmask:255.255.255.0" for npu in (1, 2)]
    return Member(
        host=Host(name),
        machine=Machine(name, "ascend", accelerators=NPUS),
        site=SITE,
        address=name,
        told=(said(*addresses), said(*(links or ("link-up", "link-up"))), said(vnic, vnic)),
    )


def launched(one: Member, other: Member) -> list[tuple[str, ...]]:
    (part,) = JOB.launch(RUN, {"gpu-01": one, "gpu-02": other}, LIMITS)
    assert part.host == "gpu-01"
    assert all(request.command.root for request in part.requests)
    return [request.command.argv[4:] for request in part.requests]


def test_each_npu_pings_the_same_npu_by_its_address() -> None:
    assert launched(member(1), member(2)) == [
        ("0", "-ping", "-g", "address", "10.20.1.2"),
        ("1", "-ping", "-g", "address", "10.20.2.2"),
    ]


def test_hccs_is_asked_where_a_link_is_not_in_use() -> None:
    down = ("link-down", "link-up")
    assert launched(member(1, *down, vnic="vnic"), member(2, vnic="vnic")) == [
        ("0", "-hccs_ping", "-g", "address", "192.4.2.199"),
        ("1", "-ping", "-g", "address", "10.20.2.2"),
    ]
    with pytest.raises(Unjudgeable, match="npu0 of gpu-02 has no address"):
        launched(member(1, *down), member(2))


def test_without_answers_nothing_is_launched() -> None:
    for answers in ((), (Output("", "lost", 1),) * 3):
        with pytest.raises(Unjudgeable, match="gpu-02"):
            launched(member(1), replace(member(2), told=answers))


def test_what_is_asked_before_is_asked_of_each_npu() -> None:
    commands = asked_by(JOB, member(1).machine)
    assert [command.argv[4:] for command in commands] == [
        ("0:1", "-ip", "-g"),
        ("0:1", "-link", "-g"),
        ("0:1", "-vnic", "-g"),
    ]
    assert asked_by(JOB, Machine("gpu-01", "ascend")) == ()


@pytest.mark.parametrize(
    ("second", "good", "says"),
    [
        ("ping-ok", True, "gpu-01 npu1 to gpu-02 npu1: no packet is lost"),
        ("hccs-ping-ok", True, "npu1 to gpu-02 npu1: no packet is lost"),
        ("hccs-ping-loss", False, "npu1: 33.33 % of the packets are lost, want none"),
        ("hccs-ping-unsupported", None, "not supported on this product"),
        ("busy", None, "is busy"),
    ],
)
def test_what_a_run_shows(second: str, good: bool | None, says: str) -> None:
    outputs = tuple(
        Output(f"[npu {npu} rc 0]\n{RECORDED[name].rstrip()}\n[end]\n")
        for npu, name in enumerate(("ping-ok", second))
    )
    members = {"gpu-01": member(1), "gpu-02": member(2)}
    ran = JOB.read(RUN, members, LIMITS, Answered(outputs=outputs))
    assert ran.outcome.good is good
    found = next(each for each in ran.verdicts if says in each.reason)
    assert found.cause is (UNREACHED if good is False else None)


@pytest.mark.parametrize("answered", [Answered(problem="lost"), Answered(timed_out=True)])
def test_a_run_that_was_lost_proves_nothing(answered: Answered) -> None:
    ran = JOB.read(RUN, {}, LIMITS, answered)
    assert (ran.outcome.good, ran.verdicts[0].status) == (None, Status.ERROR)


@pytest.mark.parametrize("answers", [0, 1])
def test_what_was_not_answered_is_no_pass(answers: int) -> None:
    fine = Output(f"[npu 0 rc 0]\n{RECORDED['ping-ok']}[end]\n")
    members = {"gpu-01": member(1), "gpu-02": member(2)}
    ran = JOB.read(RUN, members, LIMITS, Answered(outputs=(fine,) * answers))
    assert (ran.outcome.good, ran.verdicts[0].status) == (None, Status.ERROR)
    assert f"{answers} of 2 answers of hccn_tool" in ran.verdicts[0].reason


def over_hccs(*received: int) -> Ran:
    """A run between hosts whose links are not in use; packets of three that come back, by NPU."""
    down = ("link-down", "link-down")
    members = {"gpu-01": member(1, *down, vnic="vnic"), "gpu-02": member(2, *down, vnic="vnic")}
    outputs = tuple(
        Output(
            f"[npu {npu} rc 0]\n3 packets transmitted, {back} received, "
            f"{100 * (3 - back) / 3:.2f}% packets loss\n[end]\n"
        )
        for npu, back in enumerate(received)
    )
    return JOB.read(RUN, members, LIMITS, Answered(outputs=outputs))


def test_hosts_of_two_superpods_are_not_broken() -> None:
    ran = over_hccs(0, 0)
    assert (ran.outcome.good, ran.verdicts[0].kind) == (None, Kind.UNDECIDABLE)
    assert "spod-info" in ran.verdicts[0].reason
    # One that answers proves the superpod: then the other is at fault.
    assert over_hccs(0, 3).outcome.good is False


def test_where_nothing_passes_icmp_may_be_filtered() -> None:
    found = search([over_hccs(0, 3)], located=at_fault("fabric", *HOSTS))
    (whole,) = JOB.together(found, LIMITS)
    assert whole.kind is Kind.UNDECIDABLE


def test_the_npu_at_fault_is_told_with_an_example() -> None:
    lost = Output("[npu 1 rc 0]\n3 packets transmitted, 0 received, 100.00% packets loss\n[end]\n")
    fine = Output(f"[npu 0 rc 0]\n{RECORDED['ping-ok']}[end]\n")
    members = {"gpu-01": member(1), "gpu-02": member(2)}
    bad = JOB.read(RUN, members, LIMITS, Answered(outputs=(fine, lost)))
    found = search([bad], located=at_fault("rail", "gpu-01", rail=1, good=HOSTS[1:]))
    (verdict,) = judge(Seen(found), Machine("gpu-01"), SITE, LIMITS)
    assert (verdict.status, verdict.cause) == (Status.FAIL, UNREACHED)
    assert "gpu-01 npu1 to gpu-02 npu1: 100 % of the packets are lost" in verdict.reason
    assert verdict.remedies[0].command == "hccn_tool -i 1 -ping -g address 10.20.2.2"
    (whole,) = JOB.together(found, LIMITS)
    assert whole.cause is UNREACHED
