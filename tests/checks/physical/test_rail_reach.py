"""physical.rail-reach: what pings say of rails, and of whom."""

from __future__ import annotations

import subprocess
from dataclasses import replace
from pathlib import Path

import pytest

from checks.physical.rail_reach import CHECK, Seen, judge
from commcheck.command import Output
from commcheck.errors import Unjudgeable
from commcheck.formats.ip_addresses import IP_ADDRESSES
from commcheck.formats.ping import SMALL, Ping, Pings, parse
from commcheck.jobs.job import Answered, Member
from commcheck.jobs.outcomes import Run
from commcheck.jobs.reach import PATH_MTU, SCRIPT, UNREACHED, Limits
from commcheck.loads import site_of
from commcheck.model import Host, Kind, Machine, Rail, Status
from tests.jobs.searches import HOSTS, at_fault, launched_by, search
from tests.sshd import write_tool

RECORDED = Path(__file__).parents[2] / "recorded" / "ping"
JOB, LIMITS = launched_by(CHECK), Limits()
SITE = site_of(Host("gpu-01"), "gpu-roce")
RUN = Run(("gpu-01", "gpu-02"))


def recorded(name: str) -> str:
    return (RECORDED / f"{name}.txt").read_text()


@pytest.mark.parametrize(
    ("name", "said"),
    [
        ("good", Ping(3, 3)),
        ("too-long-here", Ping(3, 0, "message too long, mtu=4200")),
        ("frag-needed", Ping(3, 0, "Frag needed and DF set (mtu = 1500)")),
        ("host-unreachable", Ping(3, 0)),
        ("lost", Ping(3, 0)),
        ("busybox", Ping(2, 2)),
    ],
)
def test_what_ping_prints(name: str, said: Ping) -> None:
    assert parse(Output(recorded(name))) == Pings(said)
    both = f"{recorded(name)}{SMALL}\n{recorded('good')}"
    assert parse(Output(both)) == Pings(said, Ping(3, 3))


def test_a_cut_or_foreign_answer_is_refused() -> None:
    whole = recorded("good")
    for end in range(whole.index("3 packets")):
        with pytest.raises(Unjudgeable):
            parse(Output(whole[:end]))
    with pytest.raises(Unjudgeable, match="No such device"):
        parse(Output(recorded("no-device")))


# --- launching -----------------------------------------------------------------------------------


def member(number: int, mtu: int = 4200, addresses: int = 2) -> Member:
    name = f"gpu-{number:02d}"
    rails = tuple(Rail(n, f"mlx5_{n}", netdev=f"ens{n}", link_layer="Ethernet") for n in range(2))
    links = ",".join(
        f'{{"ifname":"ens{n}","mtu":{mtu},"addr_info":'
        f'[{{"local":"192.0.2.{16 * n + number}","prefixlen":28}}]}}'
        for n in range(addresses)
    )
    return Member(
        host=Host(name),
        machine=Machine(name, "gpu-roce", rails=rails),
        site=SITE,
        address=name,
        programs={"ping": "/usr/bin/ping"},
        told=(Output(f"[{links}]\n"), Output("[]\n")),
    )


def test_it_pings_each_rail_at_the_mtu_of_both() -> None:
    assert JOB.asks == IP_ADDRESSES.commands
    (part,) = JOB.launch(RUN, {"gpu-01": member(1, 9000), "gpu-02": member(2)}, LIMITS)
    assert part.host == "gpu-01"
    words = [request.command.argv[4:] for request in part.requests]
    assert words == [
        ("/usr/bin/ping", "ens0", "4172", "192.0.2.2", "3"),
        ("/usr/bin/ping", "ens1", "4172", "192.0.2.18", "3"),
    ]


LOST = (Output("", "lost", 1),) * 2


@pytest.mark.parametrize("peer", [member(2, addresses=1), replace(member(2), told=LOST)])
def test_without_an_address_nothing_is_tried(peer: Member) -> None:
    with pytest.raises(Unjudgeable):
        JOB.launch(RUN, {"gpu-01": member(1), "gpu-02": peer}, LIMITS)


def test_small_packets_follow_only_where_large_ones_are_lost(tmp_path: Path) -> None:
    tool = tmp_path / "ping"

    def run() -> Pings:
        words = ["sh", "-c", SCRIPT, "sh", str(tool), "ens0", "4172", "192.0.2.2", "3"]
        done = subprocess.run(words, capture_output=True, text=True, check=False)
        return parse(Output(done.stdout, done.stderr, done.returncode))

    write_tool(tool, f"case $* in *4172*) cat {RECORDED}/lost.txt; exit 1 ;; esac\n"
               f"cat {RECORDED}/good.txt")  # fmt: skip
    assert run() == Pings(Ping(3, 0), Ping(3, 3))
    write_tool(tool, f"cat {RECORDED}/good.txt")
    assert run() == Pings(Ping(3, 3))


# --- reading -------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("second", "good", "cause", "says"),
    [
        ("good", True, None, "gpu-01 mlx5_0 (ens0) to gpu-02: 3 of 3 at 4200 bytes"),
        ("lost", False, UNREACHED, "mlx5_1 (ens1) to gpu-02: 3 of 3 packets are lost, want none"),
        (f"frag-needed {SMALL} good", False, PATH_MTU,
         "3 of 3 of 4200 bytes are lost (Frag needed and DF set (mtu = 1500))"),
        (f"lost {SMALL} lost", False, UNREACHED, "packets are lost"),
        ("no-device", None, None, "No such device"),
    ],
)  # fmt: skip
def test_what_a_run_shows(second: str, good: bool | None, cause: object, says: str) -> None:
    text = "".join(f"{SMALL}\n" if word == SMALL else recorded(word) for word in second.split())
    told = Answered(outputs=(Output(recorded("good")), Output(text)))
    ran = JOB.read(RUN, {"gpu-01": member(1), "gpu-02": member(2)}, LIMITS, told)
    assert ran.outcome.good is good
    first = next(each for each in ran.verdicts if says in each.reason)
    assert first.cause is cause


@pytest.mark.parametrize("answered", [Answered(problem="lost"), Answered(timed_out=True)])
def test_a_run_that_was_lost_proves_nothing(answered: Answered) -> None:
    ran = JOB.read(RUN, {}, LIMITS, answered)
    assert (ran.outcome.good, ran.verdicts[0].status) == (None, Status.ERROR)


@pytest.mark.parametrize("answers", [0, 1])
def test_what_was_not_answered_is_no_pass(answers: int) -> None:
    told = Answered(outputs=(Output(recorded("good")),) * answers)
    ran = JOB.read(RUN, {"gpu-01": member(1), "gpu-02": member(2)}, LIMITS, told)
    assert (ran.outcome.good, ran.verdicts[0].status) == (None, Status.ERROR)


# --- judging -------------------------------------------------------------------------------------


@pytest.mark.parametrize("second", ["lost", f"lost {SMALL} good"])
def test_the_rail_at_fault_is_told_in_words_of_reach(second: str) -> None:
    text = "".join(f"{SMALL}\n" if word == SMALL else recorded(word) for word in second.split())
    told = Answered(outputs=(Output(recorded("good")), Output(text)))
    members = {"gpu-01": member(1), "gpu-02": member(2)}
    bad = JOB.read(RUN, members, LIMITS, told)
    located = at_fault("rail", "gpu-01", rail=1, good=HOSTS[1:])
    found = search([bad], located=located)
    (verdict,) = judge(Seen(found), Machine("gpu-01"), SITE, LIMITS)
    assert verdict.status is Status.FAIL
    assert verdict.cause is (PATH_MTU if "good" in second else UNREACHED)
    # It looks before it changes, and can be pasted: no shell takes <PEER> for a word.
    look = verdict.remedies[0].command
    assert look == "ip neigh show dev ens1; tracepath -n 192.0.2.18"
    there = search([bad], located=at_fault("rail", "gpu-02", rail=1, good=("gpu-01",)))
    (other,) = judge(Seen(there), Machine("gpu-02"), SITE, LIMITS)
    # The way that was tried ends there, and nobody looks for a way to himself.
    assert other.remedies[0].command == "ip neigh show dev <NETDEV>; tracepath -n <PEER>"
    assert "host gpu-01 rail 1: two runs show it" in verdict.reason
    assert "mlx5_1 (ens1) to gpu-02" in verdict.reason
    (whole,) = JOB.together(found, LIMITS)
    assert whole.cause is verdict.cause


def test_where_no_ping_passes_at_all_icmp_may_be_filtered() -> None:
    members = {"gpu-01": member(1), "gpu-02": member(2)}
    lost = Answered(outputs=(Output(recorded("lost")),) * 2)
    bad = JOB.read(RUN, members, LIMITS, lost)
    found = search([bad], located=at_fault("fabric", *HOSTS))
    (whole,) = JOB.together(found, LIMITS)
    assert whole.kind is Kind.UNDECIDABLE
    assert "physical.rdma-pairs tells" in whole.reason
