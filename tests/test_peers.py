"""Who is unlike its peers: majorities, ties, too few, shards, and what is declared."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from checks.physical import nic_firmware
from commcheck.check import Check, Nothing, Trait, to_compare
from commcheck.model import (
    Cause,
    Finding,
    Host,
    Kind,
    Rail,
    Remedy,
    Result,
    Status,
    Verdict,
    Words,
)
from commcheck.peers import compare, group_of, is_waiting, placed
from commcheck.report.events import encode, result_event, run_event
from commcheck.report.replay import record_from_events
from tests.report.runs import info

WORDS = Words("x", "x")
ODD = Cause("odd", WORDS, WORDS, (Remedy("", WORDS, WORDS),))
MTU = Trait("mtu", Words("MTU", "MTU"), ODD, owners=("physical.mtu",))
FIRMWARE = Trait("firmware", Words("firmware", "固件"), ODD, kin="board")
ADDRESS = Trait("address", Words("address", "地址"), ODD, unique="port")


def judge(_seen: Nothing, _rail: Rail, _want: Nothing, _limits: Nothing) -> Verdict:
    return to_compare({})


CHECK = Check(
    id="physical.alike",
    title=WORDS,
    subject=Rail,
    seen=Nothing,
    judge=judge,
    causes=(ODD,),
    peers=(MTU, FIRMWARE, ADDRESS),
)


def told(
    host: str,
    values: Mapping[str, object],
    *,
    group: str = "gpu",
    subject: str = "mlx5_0",
    unread: Mapping[str, str] | None = None,
    driver: str | None = None,
) -> Result:
    verdict = placed(
        to_compare(values, unread),
        Host(host, {"commcheck_peers": group}),
        "gpu-roce",
        Rail(0, subject, driver=driver),
    )
    finding = Finding(check=CHECK.id, host=host, subject=subject, verdict=verdict)
    return Result(check=CHECK.id, host=host, findings=(finding,))


def by_host(results: Sequence[Result]) -> dict[str, Verdict]:
    return {result.host: result.worst.verdict for result in results}


def mtus(*values: int, **more: Any) -> list[Result]:
    return [told(f"gpu-{n:02d}", {"mtu": mtu}, **more) for n, mtu in enumerate(values, 1)]


def test_the_odd_one_is_named_with_what_most_have() -> None:
    found = by_host(compare([CHECK], mtus(4200, 4200, 1500, 4200)))
    odd = found.pop("gpu-03")
    assert (odd.status, odd.cause, odd.rule) == (Status.WARN, ODD, "mtu")
    assert odd.reason == "mlx5_0 has MTU 1500, 3 of 4 peers have 4200"
    assert odd.measured["majority"] == 4200
    assert {each.status for each in found.values()} == {Status.PASS}
    assert found["gpu-01"].reason == "like its peers: MTU 4200"


def test_remedies_are_filled_from_what_the_odd_one_told() -> None:
    tool = Cause("tool", WORDS, WORDS, (Remedy("tool -d {pci} -o {other}", WORDS, WORDS),))
    check = replace(CHECK, causes=(tool,), peers=(replace(MTU, cause=tool),))
    told_of = [
        told(f"gpu-{n:02d}", {"mtu": mtu, "pci": f"0000:{n}7:00.0"})
        for n, mtu in enumerate((1500, 4200, 4200), 1)
    ]
    odd = by_host(compare([check], told_of))["gpu-01"]
    assert [each.command for each in odd.remedies] == ["tool -d 0000:17:00.0 -o <OTHER>"]
    told_of[1] = told("gpu-02", {"mtu": 9000})
    split = by_host(compare([check], told_of))["@gpu"]
    assert [each.command for each in split.remedies] == ["tool -d <PCI> -o <OTHER>"]


def test_two_that_are_alike_have_no_majority_to_be_alike_to() -> None:
    found = by_host(compare([CHECK], mtus(4200, 4200)))
    assert {each.kind for each in found.values()} == {Kind.NOT_APPLICABLE}


def test_that_two_differ_is_said_of_both() -> None:
    """A pair of hosts is a whole job: where only one of them encrypts, nothing comes up."""
    found = by_host(compare([CHECK], mtus(4200, 1500)))
    both = found.pop("@gpu")
    assert both.status is Status.WARN
    assert both.reason == (
        "mlx5_0: MTU has no majority among 2 peers: gpu-02 has 1500, gpu-01 has 4200; "
        "commcheck_peers says who should be alike"
    )
    assert both.hosts == ("gpu-01", "gpu-02")
    assert {each.kind for each in found.values()} == {Kind.UNDECIDABLE}
    fails = replace(CHECK, peers=(replace(MTU, fails=True),))
    assert by_host(compare([fails], mtus(4200, 1500)))["@gpu"].status is Status.FAIL


def test_a_tie_is_said_once_of_the_group_and_decides_nothing() -> None:
    found = by_host(compare([CHECK], mtus(4200, 4200, 9000, 9000)))
    split = found.pop("@gpu")
    assert split.status is Status.WARN
    assert "2 have 4200, 2 have 9000" in split.reason
    assert split.hosts == ("gpu-01", "gpu-02", "gpu-03", "gpu-04")
    assert {each.kind for each in found.values()} == {Kind.UNDECIDABLE}


def test_groups_and_rails_of_other_names_are_not_compared() -> None:
    results = [*mtus(4200, 4200), told("nas-1", {"mtu": 1500}, group="storage")]
    results += [told(f"x-{n}", {"mtu": n}, subject=f"mlx5_{n + 1}") for n in range(5)]
    found = by_host(compare([CHECK], results))
    assert {each.kind for each in found.values()} == {Kind.NOT_APPLICABLE}


def test_only_kin_are_compared() -> None:
    boards = ["A", "A", "A", "B", "B", "B"]
    results = [
        told(f"gpu-{n}", {"board": board, "firmware": f"{board}1" if n else "A0"})
        for n, board in enumerate(boards)
    ]
    found = by_host(compare([CHECK], results))
    assert found.pop("gpu-0").reason == "mlx5_0 has firmware A0, 2 of 3 peers have A1"
    assert {each.status for each in found.values()} == {Status.PASS}


def owner(host: str, status: Status) -> Result:
    verdict = Verdict(status=status, reason="x", cause=ODD, remedies=ODD.remedies)
    finding = Finding(check="physical.mtu", host=host, subject="mlx5_0", verdict=verdict)
    return Result(check="physical.mtu", host=host, findings=(finding,))


def test_where_what_is_declared_is_not_met_there_is_no_drift_on_top() -> None:
    results = [*mtus(4200, 4200, 4200, 1500), owner("gpu-04", Status.FAIL)]
    assert by_host(compare([CHECK], results))["gpu-04"].kind is Kind.BLOCKED


def test_what_is_wrong_with_a_rail_is_said_of_its_host_too() -> None:
    results = [*mtus(4200, 4200, 4200, 1500, subject=""), owner("gpu-04", Status.FAIL)]
    assert by_host(compare([CHECK], results))["gpu-04"].kind is Kind.BLOCKED


def test_a_majority_that_is_wrong_does_not_blame_the_one_that_is_right() -> None:
    wrong = [owner(f"gpu-0{n}", Status.FAIL) for n in (1, 2, 3)]
    found = by_host(compare([CHECK], [*mtus(1500, 1500, 1500, 4200), *wrong]))
    assert found["gpu-04"].kind is Kind.NOT_APPLICABLE


def test_what_was_not_read_is_not_alike() -> None:
    results = mtus(4200, 4200, 4200)
    results.append(told("gpu-04", {"mtu": 4200}, unread={"PFC": "dcb is not there"}))
    found = by_host(compare([CHECK], results))
    assert found["gpu-04"].kind is Kind.UNDECIDABLE
    assert "PFC: dcb is not there" in found["gpu-04"].reason


def test_what_a_host_could_not_tell_stays() -> None:
    broken = Verdict(status=Status.ERROR, kind=Kind.CHECK, reason="no tool", error="X")
    finding = Finding(check=CHECK.id, host="gpu-09", subject="", verdict=broken)
    result = Result(check=CHECK.id, host="gpu-09", findings=(finding,))
    assert not is_waiting(result)
    assert by_host(compare([CHECK], [*mtus(1, 1, 1), result]))["gpu-09"] == broken


def test_two_drifts_of_one_rail_are_two_findings() -> None:
    results = [told(f"gpu-{n}", {"mtu": 1, "firmware": "a", "board": "x"}) for n in range(4)]
    results[0] = told("gpu-0", {"mtu": 2, "firmware": "b", "board": "x"})
    first = next(each for each in compare([CHECK], results) if each.host == "gpu-0")
    assert [each.verdict.rule for each in first.findings] == ["mtu", "firmware"]


def through_events(results: Sequence[Result]) -> list[Result]:
    """As a later command reads them."""
    lines = [encode(run_event(info())), *(encode(result_event(each)) for each in results)]
    return list(record_from_events(line.decode() for line in lines).results)


MEMBERS = st.lists(
    st.fixed_dictionaries(
        {"mtu": st.sampled_from([1500, 4200, 9000]), "firmware": st.sampled_from(["a", "b"])},
        optional={"board": st.sampled_from(["A", "B"])},
    ),
    max_size=9,
)


@settings(max_examples=40)
@given(MEMBERS, st.integers(1, 3))
def test_shards_merged_and_stored_results_say_the_same(
    members: list[dict[str, object]], shards: int
) -> None:
    results = [told(f"gpu-{n}", each) for n, each in enumerate(members)]
    whole = by_host(compare([CHECK], results))
    parts = [
        through_events([*part, *compare([CHECK], part, whole=False)])
        for part in (results[n::shards] for n in range(shards))
    ]
    for part in parts:
        assert all(not is_waiting(each) for each in part[len(part) // 2 :])
    merged = [each for part in parts for each in part]
    again = by_host(compare([CHECK], merged))
    assert {host: (v.status, v.kind, v.reason) for host, v in again.items()} == {
        host: (v.status, v.kind, v.reason) for host, v in whole.items()
    }
    # And once more over its own verdicts.
    settled = through_events([*results, *compare([CHECK], results)])
    twice = by_host(compare([CHECK], settled))
    assert {host: v.reason for host, v in twice.items()} == {
        host: v.reason for host, v in whole.items()
    }


@settings(max_examples=40)
@given(MEMBERS)
def test_never_a_pass_without_a_majority(members: list[dict[str, object]]) -> None:
    found = by_host(compare([CHECK], [told(f"gpu-{n}", each) for n, each in enumerate(members)]))
    values = [json.dumps(each["mtu"]) for each in members]
    for n, each in enumerate(members):
        verdict = found[f"gpu-{n}"]
        if "MTU" in verdict.reason and verdict.status is Status.PASS:
            assert values.count(json.dumps(each["mtu"])) * 2 > len(values) >= 3


@pytest.mark.parametrize(
    ("host", "group"),
    [
        (Host("a", {"commcheck_peers": "rack-7"}, platform_group="gpu"), "rack-7"),
        (Host("a", {}, platform_group="gpu"), "gpu"),
        (Host("a"), "gpu-roce"),
    ],
)
def test_whose_peer_a_host_is(host: Host, group: str) -> None:
    assert group_of(host, "gpu-roce") == group


def test_a_verdict_that_is_not_to_compare_is_left_alone() -> None:
    verdict = Verdict(status=Status.PASS, reason="x", measured={"a": 1})
    assert placed(verdict, Host("a"), "gpu-roce") is verdict


@pytest.mark.parametrize(
    ("driver", "commands"),
    [
        (
            "mlx5_core",
            ["mlxfwmanager --query -d 0000:c1:00.0", "devlink dev info pci/0000:c1:00.0"],
        ),
        ("bnxt_en", ["devlink dev info pci/0000:c1:00.0"]),
        (None, ["mlxfwmanager --query -d 0000:c1:00.0", "devlink dev info pci/0000:c1:00.0"]),
    ],
)
def test_no_command_for_another_makers_card(driver: str | None, commands: list[str]) -> None:
    check = replace(CHECK, peers=nic_firmware.CHECK.peers)
    results = [
        told(f"gpu-{n}", {"firmware": version, "board": "b", "pci": "0000:c1:00.0"}, driver=driver)
        for n, version in enumerate(["230.2", "230.2", "229.0"])
    ]
    odd = by_host(compare([check], results))["gpu-2"]
    assert [each.command for each in odd.remedies] == commands


def test_many_values_are_counted_and_not_all_named() -> None:
    results = compare([CHECK], mtus(1, 1, 2, 2, 3, 4, 5, 6))
    (group,) = (each for each in results if each.host.startswith("@"))
    assert group.worst.verdict.reason == (
        "mlx5_0: MTU has no majority among 8 peers: 2 have 1, 2 have 2, gpu-05 has 3, gpu-06 has "
        "4, and 2 more values; commcheck_peers says who should be alike"
    )


def test_who_lacks_a_trait_and_what_compares_nothing_keep_nobody_else_from_it() -> None:
    without = told("gpu-00", {"board": "b"})
    found = by_host(
        compare([replace(CHECK, peers=()), CHECK], [without, *mtus(4200, 4200, 1500, 4200)])
    )
    assert found["gpu-03"].status is Status.WARN
    assert found["gpu-00"].kind is Kind.NOT_APPLICABLE


@pytest.mark.parametrize("name", ["driver", "kernel_driver"])
def test_a_trait_that_is_called_like_a_driver_is_compared(name: str) -> None:
    check = replace(CHECK, peers=(Trait(name, WORDS, ODD),))
    results = [
        told(f"gpu-{n}", {name: version}, driver="mlx5_core")
        for n, version in enumerate(["24.10", "24.10", "23.07"])
    ]
    assert by_host(compare([check], results))["gpu-2"].status is Status.WARN


def addressed(host: str, address: str, port: str, subject: str = "mlx5_0") -> Result:
    return told(host, {"address": address, "port": port}, subject=subject)


def test_what_no_two_hosts_may_have() -> None:
    results = [
        addressed("gpu-01", "192.0.2.1", "p1"),
        addressed("gpu-02", "192.0.2.2", "p2"),
        addressed("gpu-03", "192.0.2.1", "p3", subject="mlx5_1"),
    ]
    found = by_host(compare([CHECK], results))
    assert {host: verdict.status for host, verdict in found.items()} == {
        "gpu-01": Status.FAIL,
        "gpu-02": Status.SKIP,
        "gpu-03": Status.FAIL,
    }
    assert found["gpu-01"].reason == (
        "mlx5_0 has address 192.0.2.1, as has gpu-03 on mlx5_1; want one of its own"
    )


def test_one_port_under_two_names_is_no_two_hosts() -> None:
    """Two pods of one node, or two names of one machine."""
    one, other = (addressed(host, "192.0.2.1", "p1") for host in ("gpu-01", "gpu-02"))
    found = by_host(compare([CHECK], [one, other]))
    assert {verdict.status for verdict in found.values()} == {Status.SKIP}


def test_what_one_host_has_twice_is_no_matter_of_its_peers() -> None:
    one, other = (
        addressed("gpu-01", "192.0.2.1", port, subject=port) for port in ("mlx5_0", "mlx5_1")
    )
    both = replace(one, findings=(*one.findings, *other.findings))
    found = by_host(compare([CHECK], [both]))
    assert {verdict.status for verdict in found.values()} == {Status.SKIP}
