"""The engine's judging: needs, gates, errors that are not verdicts, and what is never a pass."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any

import pytest

from commcheck.check import (
    AnyCheck,
    Check,
    Explained,
    Key,
    Nothing,
    Reader,
    Together,
    Trait,
    Unread,
    expects,
    failed,
    first_of,
    limit,
    passed,
    reads,
    to_compare,
    tries,
    undecidable,
    warned,
)
from commcheck.collect.base import Frame, Request, State
from commcheck.command import Command, Output
from commcheck.errors import (
    ConnectionLost,
    HostDeadline,
    HostError,
    ParseError,
    Position,
    Unreachable,
)
from commcheck.judge import Waive, as_it_is, for_platform, gate_fleet, judge_host
from commcheck.model import (
    Cause,
    Host,
    Kind,
    Machine,
    Origin,
    Rail,
    Remedy,
    Result,
    Status,
    Verdict,
    Wanted,
    Words,
)
from commcheck.plan import Asked
from commcheck.plays import Entry, Gate, Severity

WORDS = Words("x", "x")
CAUSE = Cause("odd", WORDS, WORDS, (Remedy("fix {hca}", WORDS, WORDS),))
EFFECT = Cause("effect", WORDS, WORDS, (Remedy("fix", WORDS, WORDS),))
HOST = Host("gpu-01", {"commcheck_platform": "gpu-roce"})
RAILS = (Rail(0, "mlx5_0", netdev="eth0"), Rail(1, "mlx5_1", netdev="eth1"))
MACHINE = Machine("gpu-01", platform="gpu-roce", rails=RAILS)


def parse_number(output: Output) -> int:
    if not output.text.strip().isdigit():
        raise ParseError("number", output.text)
    return int(output.text)


NUMBER = Reader("number", (Command(("number", "{hca}")),), parse_number, per=Rail)
OTHER = Reader("other", (Command(("other", "{hca}")),), parse_number, per=Rail)
HOSTWIDE = Reader("hostwide", (Command(("hostwide",)),), parse_number)


@dataclass(frozen=True, slots=True)
class Seen:
    number: int = reads(NUMBER)


def judge_even(seen: Seen, rail: Rail, _want: Nothing, _limits: Nothing) -> Verdict:
    if seen.number % 2:
        return failed(CAUSE, f"{rail.hca} shows {seen.number}, want even", hca=rail.hca)
    return passed(f"{rail.hca} shows {seen.number}")


def rail_check(check_id: str, judge: Callable[..., Verdict] = judge_even, **more: Any) -> AnyCheck:
    settings = {"subject": Rail, "seen": Seen, **more}
    return Check(id=check_id, title=WORDS, judge=judge, causes=(CAUSE,), **settings)


def judge_there(_seen: Nothing, _machine: Machine, _want: Nothing, _limits: Nothing) -> Verdict:
    return passed("reached")


REACHABLE = Check(
    id="physical.reachable", title=WORDS, subject=Machine, seen=Nothing, judge=judge_there
)
EVEN = rail_check("physical.even")
ABOVE = rail_check("library.above")


def frame(*argv: str, stdout: bytes = b"2\n", rc: int | None = 0, **more: Any) -> Frame:
    key = Request(Command(argv)).key
    return Frame(key, stdout, b"", rc, 1.0, 1.5, **more)


def frames(**answers: Frame) -> dict[str, Frame]:
    both = {f.key: f for f in (frame("number", "mlx5_0"), frame("number", "mlx5_1"))}
    both.update({f.key: f for f in answers.values()})
    return both


def run(
    *checks: AnyCheck,
    machine: Machine | None = MACHINE,
    got: dict[str, Frame] | None = None,
    error: HostError | None = None,
    host: Host = HOST,
) -> dict[str, Result]:
    results = judge_host(
        host,
        [Asked(check) for check in checks],
        machine,
        frames() if got is None else got,
        error,
        lambda b: b.decode(),
    )
    assert [result.check for result in results] == [check.id for check in checks]
    return {result.check: result for result in results}


def test_one_verdict_a_rail_and_the_worst_stands_for_all() -> None:
    bad = frame("number", "mlx5_1", stdout=b"3\n")
    result = run(EVEN, got=frames(bad=bad))["physical.even"]
    assert [(f.subject, f.verdict.status) for f in result.findings] == [
        ("mlx5_0", Status.PASS),
        ("mlx5_1", Status.FAIL),
    ]
    assert result.worst.verdict.remedies[0].command == "fix mlx5_1"
    assert [finding.evidence[0].head for finding in result.findings] == ["", "3\n"]
    assert result.seconds == pytest.approx(1.0)


@pytest.mark.parametrize(
    ("answer", "error", "says"),
    [
        (frame("number", "mlx5_0", rc=127), "CommandMissing", "does not start"),
        (frame("number", "mlx5_0", rc=126), "CommandMissing", "does not start"),
        (frame("number", "mlx5_0", rc=124, state=State.TIMED_OUT), "CommandTimedOut", "timed out"),
        (frame("number", "mlx5_0", rc=1, state=State.SUDO_REFUSED), "SudoRefused", "needs root"),
        (frame("number", "mlx5_0", rc=None, state=State.LOST), "CommandNotRun", "did not end"),
        (frame("number", "mlx5_0", rc=None), "CommandNotRun", "did not end"),
        (frame("number", "mlx5_0", truncated=True), "OutputTruncated", "cut"),
        (frame("number", "mlx5_0", stdout=b"???"), "ParseError", "cannot read"),
        (frame("number", "mlx5_0", stdout=b""), "ParseError", "is empty"),
    ],
)
def test_what_was_not_read_is_an_error_and_never_a_pass(
    answer: Frame, error: str, says: str
) -> None:
    finding = run(EVEN, got=frames(answer=answer))["physical.even"].findings[0]
    assert (finding.verdict.status, finding.verdict.kind) == (Status.ERROR, Kind.CHECK)
    assert finding.verdict.error == error
    assert says in finding.verdict.reason
    assert ("; if the output is right" in finding.verdict.reason) is (error == "ParseError")


@pytest.mark.parametrize(
    ("rc", "complaint", "says"),
    [
        (127, "timeout: failed to run command 'number': No such file or directory", "there"),
        (127, "timeout: can't execute 'number': No such file or directory", "there"),
        (127, "env: 'number': No such file or directory", "there"),
        (127, "sh: 1: number: not found", "there"),
        (126, "sh: 1: number: Permission denied", "Permission denied"),
        (127, "sh: 1: number: Permission denied", "Permission denied"),
        (
            127,
            "number: error while loading shared libraries: libx.so.1: cannot open shared object "
            "file: No such file or directory",
            "libx.so.1",
        ),
        (127, "number: symbol lookup error: number: undefined symbol: x", "undefined symbol"),
    ],
)
def test_a_program_that_is_not_there_is_told_from_one_that_does_not_start(
    rc: int, complaint: str, says: str
) -> None:
    answer = replace(frame("number", "mlx5_0", stdout=b"", rc=rc), stderr=f"{complaint}\n".encode())
    verdict = run(EVEN, got=frames(answer=answer))["physical.even"].findings[0].verdict
    assert (verdict.status, verdict.error) == (Status.ERROR, "CommandMissing")
    if says == "there":
        assert verdict.reason.startswith("number is not there; install number")
    else:
        assert verdict.reason.startswith(f"number does not start (exit code {rc}: ")
        assert says in verdict.reason


def test_a_command_that_was_never_run_is_an_error() -> None:
    finding = run(EVEN, got={})["physical.even"].worst
    assert finding.verdict.error == "CommandNotRun"
    assert "not recorded" in finding.verdict.reason


def test_a_failed_need_blocks_the_same_rail_only() -> None:
    after = rail_check("physical.after", needs=("physical.even",))
    bad = frame("number", "mlx5_0", stdout=b"3\n")
    result = run(after, EVEN, got=frames(bad=bad))["physical.after"]
    assert [f.verdict.kind for f in result.findings] == [Kind.BLOCKED, Kind.NONE]
    assert "physical.even failed on mlx5_0" in result.findings[0].verdict.reason


def test_a_need_that_passed_excuses_nothing() -> None:
    needs = rail_check(
        "physical.needs", lambda *_: failed(CAUSE, "odd", hca=""), needs=("physical.even",)
    )
    results = run(EVEN, needs)
    assert results["physical.even"].status is Status.PASS
    assert {f.verdict.status for f in results["physical.needs"].findings} == {Status.FAIL}


def test_a_bond_is_asked_port_by_port_and_each_port_blocks_its_rail() -> None:
    ports = tuple(replace(RAILS[0], netdev=name, bond="bond0") for name in ("p0", "p1"))
    bond = replace(RAILS[0], netdev="bond0", ports=ports)
    of_port = Reader("number", (Command(("number", "{netdev}")),), parse_number, per=Rail)

    @dataclass(frozen=True, slots=True)
    class SeenPort:
        number: int = reads(of_port)

    each = rail_check("physical.each", seen=SeenPort, each_port=True)
    whole = rail_check("physical.whole", needs=("physical.each",))
    above = rail_check("physical.above", seen=SeenPort, each_port=True, needs=("physical.even",))
    got = frames(p0=frame("number", "p0"), p1=frame("number", "p1", stdout=b"3\n"))
    got[frame("number", "eth1").key] = frame("number", "eth1")
    machine = replace(MACHINE, rails=(bond, RAILS[1]))
    results = run(EVEN, each, whole, above, machine=machine, got=got)
    assert [(f.subject, f.verdict.status) for f in results["physical.each"].findings] == [
        ("mlx5_0:p0", Status.PASS),
        ("mlx5_0:p1", Status.FAIL),
        ("mlx5_1", Status.PASS),
    ]
    assert [f.verdict.reason for f in results["physical.whole"].findings] == [
        "blocked: physical.each failed on mlx5_0:p1",
        "mlx5_1 shows 2",
    ]
    assert results["physical.above"].findings[0].verdict.status is Status.PASS
    odd = got | {frame("number", "mlx5_0").key: frame("number", "mlx5_0", stdout=b"3\n")}
    (first, *_) = run(EVEN, above, machine=machine, got=odd)["physical.above"].findings
    assert first.verdict.reason == "blocked: physical.even failed on mlx5_0"


def test_what_the_whole_host_needs_every_rail_must_have() -> None:
    whole = Check(
        id="physical.whole",
        title=WORDS,
        subject=Machine,
        seen=Nothing,
        judge=judge_there,
        needs=("physical.even",),
    )
    bad = frame("number", "mlx5_1", stdout=b"3\n")
    (finding,) = run(EVEN, whole, got=frames(bad=bad))["physical.whole"].findings
    assert finding.verdict.reason == "blocked: physical.even failed on mlx5_1"
    assert run(EVEN, whole)["physical.whole"].status is Status.PASS


def test_blocked_is_handed_on_with_the_first_cause() -> None:
    after = rail_check("physical.after", needs=("physical.even",))
    last = rail_check("physical.last", needs=("physical.after",))
    bad = frame("number", "mlx5_0", stdout=b"3\n")
    result = run(EVEN, after, last, got=frames(bad=bad))["physical.last"]
    assert result.findings[0].verdict.reason == "blocked: physical.even failed on mlx5_0"


def test_an_unread_need_does_not_blind_the_check_but_marks_it() -> None:
    need = rail_check("physical.need", seen=SeenOther)
    after = rail_check("physical.after", needs=("physical.need",))
    results = run(need, after)
    assert results["physical.need"].status is Status.ERROR
    finding = results["physical.after"].findings[0]
    assert finding.verdict.status is Status.PASS
    assert finding.unproven_below == ("physical.need",)


@dataclass(frozen=True, slots=True)
class SeenOther:
    number: int = reads(OTHER)


def test_an_undecidable_need_blocks() -> None:
    def judge(_seen: Seen, _rail: Rail, _want: Nothing, _limits: Nothing) -> Verdict:
        return undecidable("nobody knows", turn_on="declare it")

    need = rail_check("physical.need", judge)
    after = rail_check("physical.after", needs=("physical.need",))
    finding = run(need, after)["physical.after"].findings[0]
    assert finding.verdict.kind is Kind.BLOCKED


def test_a_fail_gates_the_layers_above_and_not_its_own() -> None:
    bad = frame("number", "mlx5_0", stdout=b"3\n")
    beside = rail_check("physical.beside", seen=SeenHost, judge=judge_hostwide)
    got = frames(bad=bad, hostwide=frame("hostwide"))
    results = run(EVEN, beside, ABOVE, got=got)
    assert results["physical.beside"].status is Status.PASS
    above = results["library.above"].worst.verdict
    assert (above.status, above.kind) == (Status.SKIP, Kind.GATED)
    assert above.reason == "gated: physical.even failed on this host"


@dataclass(frozen=True, slots=True)
class SeenHost:
    number: int = reads(HOSTWIDE)


def judge_hostwide(_seen: SeenHost, _rail: Rail, _want: Nothing, _limits: Nothing) -> Verdict:
    return passed("seen")


def test_an_error_below_does_not_gate_but_marks_what_stands_above() -> None:
    answer = frame("number", "mlx5_0", rc=127)
    unread = rail_check("physical.unread", seen=SeenOther)
    results = run(unread, ABOVE, got=frames(missing=replace(answer, key="once: unrelated")))
    assert results["library.above"].status is Status.PASS
    assert results["library.above"].worst.unproven_below == ("physical.unread",)
    beside = run(unread, EVEN, rail_check("library.unread", seen=SeenOther), ABOVE)
    assert beside["physical.even"].worst.unproven_below == ()
    assert beside["library.above"].worst.unproven_below == ("physical.unread",)


def test_an_unreachable_host_is_one_error_and_the_rest_gated() -> None:
    error = Unreachable("tcp-refused", "connection refused", "is sshd running?")
    results = run(REACHABLE, EVEN, ABOVE, machine=None, got={}, error=error)
    reached = results["physical.reachable"].worst.verdict
    assert (reached.status, reached.kind, reached.error) == (
        Status.ERROR,
        Kind.HOST,
        "Unreachable",
    )
    assert reached.reason == "tcp-refused: connection refused; is sshd running?"
    for check_id in ("physical.even", "library.above"):
        verdict = results[check_id].worst.verdict
        assert verdict.kind is Kind.GATED
        assert "could not be judged" in verdict.reason


@pytest.mark.parametrize(
    "error", [ConnectionLost("connection-lost", "reset"), HostDeadline("host-deadline", "120 s")]
)
def test_a_session_that_broke_keeps_what_was_answered(error: HostError) -> None:
    got = {f.key: f for f in (frame("number", "mlx5_0"),)}
    results = run(REACHABLE, EVEN, rail_check("physical.zero"), ABOVE, got=got, error=error)
    assert results["physical.reachable"].worst.verdict.kind is Kind.HOST
    for check_id in ("physical.even", "physical.zero"):
        statuses = [finding.verdict.status for finding in results[check_id].findings]
        assert statuses == [Status.PASS, Status.ERROR]
        # Its own layer is not below it.
        assert {finding.unproven_below for finding in results[check_id].findings} == {()}
    assert results["library.above"].worst.verdict.kind is Kind.GATED


def test_a_session_that_broke_closes_what_is_above_though_the_gate_is_open() -> None:
    error = ConnectionLost("connection-lost", "reset")
    asked = (Asked(REACHABLE, Gate.NONE), Asked(ABOVE))
    results = judge_host(HOST, asked, MACHINE, frames(), error, bytes.decode)
    assert [result.kind for result in results] == [Kind.HOST, Kind.GATED]


def test_first_of_takes_the_first_that_speaks_and_says_which() -> None:
    @dataclass(frozen=True, slots=True)
    class Either:
        number: int = reads(first_of(OTHER, NUMBER))

    result = run(
        rail_check("physical.either", seen=Either),
        got=frames(missing=frame("other", "mlx5_0", rc=127)),
    )["physical.either"]
    finding = result.findings[0]
    assert finding.verdict.status is Status.PASS
    assert [(e.key, e.used) for e in finding.evidence] == [
        ("once: other mlx5_0", False),
        ("once: number mlx5_0", True),
    ]


def test_when_none_of_them_speaks_the_most_telling_error_stands() -> None:
    @dataclass(frozen=True, slots=True)
    class Either:
        number: int = reads(first_of(OTHER, NUMBER))

    got = frames(
        missing=frame("other", "mlx5_0", rc=127), odd=frame("number", "mlx5_0", stdout=b"?")
    )
    verdict = run(rail_check("physical.either", seen=Either), got=got)["physical.either"]
    assert verdict.findings[0].verdict.error == "ParseError"
    assert "none of other or number spoke" in verdict.findings[0].verdict.reason


def test_an_optional_reading_is_handed_over_unread() -> None:
    @dataclass(frozen=True, slots=True)
    class Maybe:
        number: int | Unread = tries(OTHER)

    def judge(seen: Maybe, _rail: Rail, _want: Nothing, _limits: Nothing) -> Verdict:
        assert isinstance(seen.number, Unread)
        return undecidable(seen.number.reason)

    result = run(rail_check("physical.maybe", judge, seen=Maybe))["physical.maybe"]
    assert result.kind is Kind.UNDECIDABLE


def test_a_bug_in_a_check_is_an_error_and_the_others_go_on() -> None:
    def judge(_seen: Seen, _rail: Rail, _want: Nothing, _limits: Nothing) -> Verdict:
        raise ZeroDivisionError("oops")

    results = run(rail_check("physical.broken", judge), EVEN)
    verdict = results["physical.broken"].worst.verdict
    assert (verdict.status, verdict.error) == (Status.ERROR, "Bug")
    assert "test_judge.py" in verdict.reason
    assert results["physical.even"].status is Status.PASS


def test_an_absent_rail_is_never_read() -> None:
    machine = replace(MACHINE, rails=(*RAILS, Rail(2, "mlx5_2", present=False)))
    finding = run(EVEN, machine=machine)["physical.even"].findings[2]
    assert (finding.subject, finding.verdict.kind) == ("mlx5_2", Kind.BLOCKED)


def test_other_platforms_and_hosts_without_the_subject_are_not_applicable() -> None:
    ib_only = rail_check("physical.ib", platforms=frozenset({"gpu-ib"}))
    assert run(ib_only)["physical.ib"].kind is Kind.NOT_APPLICABLE
    bare = run(EVEN, machine=replace(MACHINE, rails=()))["physical.even"]
    assert bare.kind is Kind.NOT_APPLICABLE


def read_int(value: object) -> int:
    assert isinstance(value, int)
    return value


def test_expectations_and_limits_come_with_their_origin() -> None:
    key = Key("commcheck_mtu", read_int, {"": 4200}, unit="bytes", source="kernel header sum")

    @dataclass(frozen=True, slots=True)
    class Want:
        mtu: Wanted[int] = expects(key)

    @dataclass(frozen=True, slots=True)
    class Limits:
        share: float = limit(0.1, unit="of the window", source="own")

    def judge(_seen: Seen, _rail: Rail, want: Want, limits: Limits) -> Verdict:
        return passed(f"{want.mtu} {limits.share}")

    check = rail_check("physical.bounds", judge, want=Want, limits=Limits)
    host = Host(
        "gpu-01",
        {"commcheck_mtu": 9000, "commcheck_thresholds": {"physical.bounds.share": 1}},
        {"commcheck_mtu": Origin("group_vars/gpu.yml:3")},
        origin=Origin("prod.yaml:7"),
    )
    finding = run(check, host=host)["physical.bounds"].worst
    assert finding.verdict.reason == "9000 1.0"
    assert [(b.name, b.value, b.origin) for b in finding.bounds] == [
        ("mtu", 9000, "group_vars/gpu.yml:3"),
        ("share", 1.0, "prod.yaml:7"),
    ]
    defaults = run(check)["physical.bounds"].worst
    assert [b.origin for b in defaults.bounds] == ["default (kernel header sum)", "default (own)"]


def test_a_place_with_a_hostile_name_is_refused() -> None:
    machine = replace(MACHINE, rails=(Rail(0, "mlx5_0;reboot"),))
    verdict = run(EVEN, machine=machine)["physical.even"].worst.verdict
    assert verdict.status is Status.ERROR
    assert "no name we would put into a command" in verdict.reason


def test_a_remedy_whose_place_nobody_fills_does_not_hide_the_fail() -> None:
    misspelt = Remedy("ip link set {netdv} mtu {mtu}", WORDS, WORDS)
    verdict = failed(replace(CAUSE, remedies=(misspelt,)), "too small", netdev="eth2", mtu=9000)
    assert verdict.status is Status.FAIL
    assert verdict.remedies[0].command == "ip link set <NETDV> mtu 9000"


def test_a_host_of_unknown_platform_is_undecidable_not_passed() -> None:
    roce_only = rail_check("physical.roce", platforms=frozenset({"gpu-roce"}))
    result = run(roce_only, machine=Machine("gpu-01"))["physical.roce"]
    assert result.kind is Kind.UNDECIDABLE
    assert "declare commcheck_platform" in result.worst.verdict.reason


# --- what a playbook says of a check --------------------------------------------------------------

AT = Position("p.yaml", 3)
BAD = {f.key: f for f in (frame("number", "mlx5_0", stdout=b"3\n"), frame("number", "mlx5_1"))}


def judged_as(*asked: Asked, waive: Waive = as_it_is) -> dict[str, Result]:
    results = judge_host(HOST, asked, MACHINE, BAD, None, lambda data: data.decode(), waive)
    return {result.check: result for result in results}


def test_an_open_gate_lets_the_host_climb_and_marks_what_is_above() -> None:
    entry = Entry(check="physical.even", position=AT)
    results = judged_as(Asked(EVEN, Gate.NONE, entry), Asked(ABOVE))
    above = results["library.above"].findings[1]
    assert above.verdict.status is Status.PASS
    assert above.unproven_below == ("physical.even",)


@pytest.mark.parametrize(
    ("driver", "told"),
    [("mlx5_core", ["mlnx_qos", "dcb"]), ("bnxt_en", ["dcb"]), (None, ["mlnx_qos", "dcb"])],
)
def test_a_remedy_of_another_makers_tool_is_not_told(driver: str | None, told: list[str]) -> None:
    nothing = Words("", "")
    theirs = Remedy("mlnx_qos pfc", nothing, nothing, driver="mlx5_core")
    cause = replace(CAUSE, remedies=(theirs, Remedy("dcb pfc", nothing, nothing)))
    wrong = rail_check("physical.even", lambda *_: failed(cause, "off"))
    machine = replace(MACHINE, rails=(replace(MACHINE.rails[0], driver=driver),))
    verdict = run(wrong, machine=machine)["physical.even"].worst.verdict
    assert [each.command.split()[0] for each in verdict.remedies] == told


@pytest.mark.parametrize(
    ("platform", "told"),
    [("ascend", ["npu-smi"]), ("gpu-ib", ["nvidia-smi"]), ("unknown", ["nvidia-smi", "npu-smi"])],
)
def test_a_remedy_for_other_accelerators_is_not_told(platform: str, told: list[str]) -> None:
    nothing = Words("", "")
    theirs = [
        Remedy(f"{tool} look", nothing, nothing, accelerator=accelerator)
        for tool, accelerator in (("nvidia-smi", "gpu"), ("npu-smi", "npu"))
    ]
    wrong = rail_check(
        "physical.even", lambda *_: failed(replace(CAUSE, remedies=tuple(theirs)), "off")
    )
    machine = replace(MACHINE, platform=platform)
    verdict = run(wrong, machine=machine)["physical.even"].worst.verdict
    assert [each.command.split()[0] for each in verdict.remedies] == told


@pytest.mark.parametrize(("unread", "unproven"), [({}, ()), ({"b": "no"}, ("physical.alike",))])
def test_what_waits_for_its_peers_was_judged_here(
    unread: dict[str, str], unproven: tuple[str, ...]
) -> None:
    alike = rail_check(
        "physical.alike",
        lambda *_: to_compare({"a": 1}, unread),
        peers=(Trait("a", WORDS, CAUSE), Trait("b", WORDS, CAUSE)),
    )
    above = judged_as(Asked(alike), Asked(ABOVE))["library.above"].findings[0]
    assert above.unproven_below == unproven


def test_an_advisory_check_warns_and_gates_nothing() -> None:
    entry = Entry(check="physical.even", position=AT, severity=Severity.ADVISORY)
    results = judged_as(Asked(EVEN, Gate.HOST, entry), Asked(ABOVE))
    statuses = [finding.verdict.status for finding in results["physical.even"].findings]
    assert statuses == [Status.WARN, Status.PASS]
    assert results["library.above"].findings[1].verdict.status is Status.PASS
    needs = rail_check("physical.needs", needs=("physical.even",))
    below = judged_as(Asked(EVEN, Gate.HOST, entry), Asked(needs))["physical.needs"]
    assert [each.verdict.kind for each in below.findings] == [Kind.BLOCKED, Kind.NONE]


def test_an_advisory_check_that_could_not_tell_does_not_warn() -> None:
    entry = Entry(check="physical.even", position=AT, severity=Severity.ADVISORY)
    unread = Verdict(status=Status.ERROR, kind=Kind.CHECK, reason="not read", error="ParseError")
    check = rail_check("physical.even", lambda *_: unread)
    assert judged_as(Asked(check, Gate.HOST, entry))["physical.even"].status is Status.ERROR


def test_a_waived_fail_gates_nothing() -> None:
    def waive(verdict: Verdict, check: str, host: str) -> Verdict:
        assert host == "gpu-01"
        if verdict.status is Status.FAIL and check == "physical.even":
            return replace(verdict, status=Status.SKIP, kind=Kind.WAIVED)
        return verdict

    results = judged_as(Asked(EVEN), Asked(ABOVE), waive=waive)
    assert results["physical.even"].kind is Kind.WAIVED
    assert results["library.above"].findings[1].verdict.status is Status.PASS
    assert results["library.above"].findings[1].unproven_below == ()
    after = rail_check("physical.after", lambda *_: passed("right"), needs=("physical.even",))
    results = judged_as(Asked(EVEN), Asked(after), waive=waive)
    assert results["physical.after"].status is Status.PASS  # nor does it block
    # What it brings with it is put up with as well, be it by a need or by an edge.
    needs = rail_check("physical.needs", needs=("physical.even",))
    follows: AnyCheck = Check(
        id="library.follows",
        title=WORDS,
        subject=Machine,
        seen=Nothing,
        judge=lambda *_: failed(EFFECT, "slow"),
        causes=(EFFECT,),
        explained_by=(Explained("odd"),),
    )
    results = judged_as(Asked(EVEN), Asked(needs), Asked(follows), waive=waive)
    first, *others = results["physical.needs"].findings
    assert first.verdict.kind is Kind.WAIVED
    assert first.verdict.reason == (
        "consequence of physical.even failed on mlx5_0, waived: mlx5_0 shows 3, want even"
    )
    assert [each.verdict.status for each in others] == [Status.PASS]
    (above,) = results["library.follows"].findings
    assert above.verdict.kind is Kind.WAIVED
    assert above.verdict.reason == (
        "consequence of physical.even (odd) on gpu-01 mlx5_0, waived: slow"
    )


def test_a_waived_warning_puts_up_with_nothing_else() -> None:
    def waive(verdict: Verdict, check: str, _host: str) -> Verdict:
        if verdict.status is Status.WARN and check == "physical.even":
            return replace(verdict, status=Status.SKIP, kind=Kind.WAIVED, advisory=True)
        return verdict

    warns = rail_check("physical.even", lambda *_: warned(CAUSE, "a little odd"))
    needs = rail_check("physical.needs", needs=("physical.even",))
    follows = rail_check(
        "physical.follows",
        lambda *_: failed(EFFECT, "slow"),
        explained_by=(Explained("odd"),),
    )
    for check in (needs, follows):
        results = judged_as(Asked(warns), Asked(check), waive=waive)
        assert results["physical.even"].kind is Kind.WAIVED
        assert results[check.id].status is Status.FAIL


def test_thresholds_of_the_playbook_lie_between_default_and_inventory() -> None:
    @dataclass(frozen=True, slots=True)
    class Limits:
        share: float = limit(0.1, unit="", source="own")

    def judge(_seen: Seen, _rail: Rail, _want: Nothing, limits: Limits) -> Verdict:
        return passed(str(limits.share))

    check = rail_check("physical.bounds", judge, limits=Limits)
    params: dict[str, Wanted[object]] = {"share": Wanted(0.5, Origin("p.yaml:9"))}
    entry = Entry(check="physical.bounds", position=AT, params=params)
    finding = judged_as(Asked(check, Gate.HOST, entry))["physical.bounds"].worst
    assert (finding.verdict.reason, finding.bounds[0].origin) == ("0.5", "p.yaml:9")


def test_a_fleet_gate_closes_the_layers_above_to_every_host() -> None:
    entry = Entry(check="physical.even", position=AT)
    asked = (Asked(EVEN, Gate.FLEET, entry), Asked(ABOVE))
    good = {f.key: f for f in (frame("number", "mlx5_0"), frame("number", "mlx5_1"))}
    other = Host("gpu-02", HOST.variables)
    results = [
        *judge_host(HOST, asked, MACHINE, BAD, None, lambda data: data.decode()),
        *judge_host(other, asked, MACHINE, good, None, lambda data: data.decode()),
    ]
    changed = gate_fleet(results, {"gpu-01": asked, "gpu-02": asked})
    assert [(r.host, r.check, r.kind) for r in changed] == [("gpu-02", "library.above", Kind.GATED)]
    assert "failed on the fleet" in changed[0].worst.verdict.reason
    assert gate_fleet(results, {"gpu-01": (Asked(EVEN), Asked(ABOVE))}) == ()


@pytest.mark.parametrize("beside", ["physical.beside", "physical.odd"])
def test_each_result_has_the_gate_of_its_own_check(beside: str) -> None:
    entry = Entry(check="physical.even", position=AT)
    open_ = Asked(rail_check(beside), Gate.NONE, entry)
    asked = (open_, Asked(EVEN, Gate.FLEET, entry), Asked(ABOVE))
    results = judge_host(HOST, asked, MACHINE, BAD, None, lambda data: data.decode())
    other = judge_host(Host("gpu-02"), [Asked(ABOVE)], MACHINE, frames(), None, bytes.decode)
    (changed,) = gate_fleet([*results, *other], {"gpu-01": asked, "gpu-02": asked})
    assert changed.host == "gpu-02"
    assert changed.worst.verdict.reason == "gated: physical.even failed on the fleet"


def test_a_fleet_gate_closes_what_is_above_it_whatever_was_said_there_and_nothing_below() -> None:
    undecided = rail_check("runtime.open", lambda *_: undecidable("nobody knows"))
    asked = (Asked(rail_check("physical.right", judge_right)), Asked(ABOVE, Gate.FLEET))
    failing = judge_host(HOST, asked, MACHINE, BAD, None, bytes.decode)
    others = (Asked(asked[0].check), Asked(undecided))
    other = judge_host(Host("gpu-02"), others, MACHINE, frames(), None, bytes.decode)
    changed = gate_fleet([*other, *failing], {"gpu-01": asked, "gpu-02": others})
    assert [(each.host, each.check) for each in changed] == [("gpu-02", "runtime.open")]


def judge_right(_seen: Seen, _rail: Rail, _want: Nothing, _limits: Nothing) -> Verdict:
    return passed("right")


@dataclass(frozen=True, slots=True)
class MaybeHost:
    number: int | Unread = tries(HOSTWIDE)


def parts(part: Callable[..., object], *, not_permitted: str = "", got: dict[str, Frame]) -> Result:
    check: AnyCheck = Check(
        id="library.whole",
        title=WORDS,
        subject=Machine,
        seen=MaybeHost,
        judge=lambda *_: passed("of itself"),
        together=Together(part, lambda _: ()),
    )
    asked = Asked(check, not_permitted=not_permitted)
    (result,) = judge_host(HOST, [asked], MACHINE, got, None, bytes.decode)
    return result


def test_a_host_has_a_part_of_a_whole_only_where_it_was_looked_for() -> None:
    """A host that answered nothing, or was not to be asked, does not stand for a missing rank."""
    looked = {f.key: f for f in (frame("hostwide"),)}

    def part(seen: MaybeHost, machine: Machine, _want: Nothing) -> object:
        return machine.name, seen.number

    assert parts(part, got=looked).part == ("gpu-01", 2)
    assert parts(part, got={}).part is None
    assert parts(part, got=looked, not_permitted="--allow load").part is None


def test_a_part_that_breaks_leaves_the_host_what_was_judged_of_it() -> None:
    def part(*_: object) -> object:
        raise ZeroDivisionError("oops")

    broken = parts(part, got={f.key: f for f in (frame("hostwide"),)})
    assert (broken.part, broken.status) == (None, Status.PASS)


def test_what_follows_from_a_cause_on_the_same_host_is_folded_under_it() -> None:
    bad = frame("number", "mlx5_0", stdout=b"3\n")
    effect = rail_check(
        "physical.effect",
        judge=lambda seen, *_: failed(EFFECT, "suffers") if seen.number % 2 else passed("right"),
        explained_by=(Explained("odd", "same-rail"),),
    )
    result = run(EVEN, effect, got=frames(bad=bad))["physical.effect"]
    assert [each.verdict.kind for each in result.findings] == [Kind.BLOCKED, Kind.NONE]
    assert result.findings[0].verdict.follows == "odd"


def test_a_host_of_which_nothing_is_asked_has_not_passed() -> None:
    ascend = Machine("npu-01", platform="ascend")
    for check_id in ("physical.roce", "physical.even"):
        roce_only = rail_check(check_id, platforms=frozenset({"gpu-roce"}))
        results = run(REACHABLE, roce_only, machine=ascend)
        assert results["physical.reachable"].kind is Kind.UNDECIDABLE
        assert "nothing was judged here" in results["physical.reachable"].worst.verdict.reason
    assert run(REACHABLE, machine=ascend)["physical.reachable"].status is Status.PASS


def test_a_host_is_told_no_command_for_accelerators_that_it_lacks() -> None:
    both = tuple(Remedy(kind, WORDS, WORDS, accelerator=kind) for kind in ("gpu", "npu"))
    verdict = Verdict(status=Status.WARN, reason="slow", cause=CAUSE, remedies=both)
    told = {
        platform: [each.command for each in for_platform(verdict, platform).remedies]
        for platform in ("gpu-efa", "ascend", "unknown")
    }
    assert told == {"gpu-efa": ["gpu"], "ascend": ["npu"], "unknown": ["gpu", "npu"]}
