"""Planning: each command once, in phase order; wrong values stop a run before it begins."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from commcheck.check import AnyCheck, Check, Key, Nothing, Reader, expects, limit, passed, reads
from commcheck.command import Command, Output
from commcheck.discover import FoundCheck
from commcheck.errors import InventoryError, Position
from commcheck.model import Host, Layer, Machine, Origin, Rail, Verdict, Wanted, Words
from commcheck.plan import Asked, make_climb, requests, validate
from commcheck.plays import Entry, Play

WORDS = Words("x", "x")


def text_of(output: Output) -> str:
    return output.text


PER_RAIL = Reader("tool", (Command(("tool", "{netdev}")),), text_of, per=Rail)
PER_HOST = Reader("list", (Command(("list",)), Command(("more",), root=True)), text_of)


def read_int(value: object) -> int:
    if not isinstance(value, int) or isinstance(value, bool):
        raise ValueError(f"is {value!r}, wanted a whole number")
    return value


@dataclass(frozen=True, slots=True)
class Before:
    early: str = reads(PER_RAIL, at="start")
    late: str = reads(PER_RAIL, at="end")


@dataclass(frozen=True, slots=True)
class Once:
    rail: str = reads(PER_RAIL)
    host: str = reads(PER_HOST)


@dataclass(frozen=True, slots=True)
class Want:
    mtu: Wanted[int] = expects(Key("commcheck_mtu", read_int, {"": 4200}))


@dataclass(frozen=True, slots=True)
class Limits:
    share: float = limit(0.1, unit="", source="own")


def right(_seen: Any, _subject: Any, _want: Any, _limits: Any) -> Verdict:
    return passed("fine")


def check(check_id: str, seen: type[Any] = Nothing, **more: Any) -> AnyCheck:
    settings = {"subject": Rail, "want": Want, "limits": Limits, **more}
    return Check(id=check_id, title=WORDS, seen=seen, judge=right, **settings)


def found(*checks: AnyCheck) -> tuple[FoundCheck, ...]:
    return tuple(FoundCheck(each, Path("x.py"), "", bundled=True) for each in checks)


REACHABLE = check("physical.reachable", subject=Machine)
ONE = check("physical.one", Once)
TWO = check("physical.two", Before, platforms=frozenset({"gpu-roce"}))
HOST = Host("gpu-01")
MACHINE = Machine(
    "gpu-01",
    platform="gpu-roce",
    rails=(Rail(0, "mlx5_0", netdev="eth0"), Rail(1, "mlx5_1"), Rail(2, "x", present=False)),
)


def test_each_command_once_and_in_phase_order() -> None:
    keys = [
        request.key
        for request in requests(HOST, MACHINE, [Asked(each) for each in (ONE, TWO, ONE)])
    ]
    assert keys == [
        "start: tool eth0",
        "once: tool eth0",
        "once: list",
        "once: sudo more",
        "end: tool eth0",
    ]


def test_checks_of_another_platform_ask_nothing() -> None:
    machine = Machine("gpu-01", platform="gpu-ib", rails=MACHINE.rails)
    assert requests(HOST, machine, [Asked(TWO)]) == ()


def test_a_host_that_no_check_is_for_keeps_them_all() -> None:
    climb, _ = climb_over(Host("b", {"commcheck_platform": "ascend"}), checks=(TWO,))
    assert [each.check.id for each in climb.hosts[0].asked] == [
        "physical.reachable",
        "physical.two",
    ]


def climb_over(*hosts: Host, checks: tuple[AnyCheck, ...] = (ONE, TWO)) -> Any:
    known = found(REACHABLE, *checks)
    names = frozenset(host.name for host in hosts)
    at = Position("p.yaml", 1)
    entries = tuple(Entry(check=each.id, position=at) for each in checks)
    play = Play(name="all", layer=Layer.PHYSICAL, checks=entries, position=at)
    return make_climb(hosts, [(play, names)], known), known


def test_reachable_comes_first_and_impossible_checks_are_not_planned() -> None:
    climb, _ = climb_over(
        Host("a", {"commcheck_platform": "gpu-roce"}), Host("b", {"commcheck_platform": "ascend"})
    )
    assert [[each.check.id for each in plan.asked] for plan in climb.hosts] == [
        ["physical.reachable", "physical.one", "physical.two"],
        ["physical.reachable", "physical.one"],
    ]


@pytest.mark.parametrize(
    ("variables", "says"),
    [
        ({"commcheck_mtu": "9000"}, "prod.yaml:3: error: a, commcheck_mtu: is '9000', wanted"),
        ({"commcheck_thresholds": 3}, "commcheck_thresholds is no mapping"),
        ({"commcheck_peers": ["a", "b"]}, "commcheck_peers is no name of a group"),
        ({"commcheck_thresholds": {"share": "x"}}, "'x' is str, wanted float"),
        ({"commcheck_thresholds": {"share": True}}, "True is bool, wanted float"),
    ],
)
def test_wrong_values_stop_a_run_before_it_begins(variables: dict[str, object], says: str) -> None:
    climb, known = climb_over(Host("a", variables, origin=Origin("prod.yaml:3")))
    with pytest.raises(InventoryError) as caught:
        validate(climb, known)
    assert says in str(caught.value)


def test_variables_that_nothing_reads_are_told_with_the_nearest_name() -> None:
    host = Host(
        "a",
        {"commcheck_mttu": 1, "commcheck_thresholds": {"shar": 0.2}, "other": 1},
        origin=Origin("prod.yaml:3"),
    )
    climb, known = climb_over(host, host)
    assert validate(climb, known) == (
        "prod.yaml:3: warning: nothing reads 'commcheck_mttu' (did you mean 'commcheck_mtu'?)"
        " [unknown-variable]",
        "prod.yaml:3: warning: no check has the threshold 'shar' (did you mean 'share'?)"
        " [unknown-variable]",
    )
