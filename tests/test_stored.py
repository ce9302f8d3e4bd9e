"""What counts as known of a host, and what makes two runs the same."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace
from pathlib import Path

import pytest

from commcheck.attempts import begin, passed_hosts
from commcheck.collect.base import SUBJECTS, Frame, State
from commcheck.deliver import Delivery
from commcheck.errors import HostDeadline, HostError, RunFolderError, Unreachable
from commcheck.model import Kind, Status
from commcheck.prepare import Choice, Prepared, plan_of, prepare
from commcheck.reach import settings_of, words_of
from commcheck.report.events import events_of
from commcheck.report.folder import RunFolder
from commcheck.report.record import Failure, Record
from commcheck.stored import Stored, differences, ended_with, failure_of, of_passed, of_run
from tests.report.runs import CHECKS, healthy, incident, info, plan, result, verdict

FACTS = b"kernel Linux\nuid 0\nboot_id %s\nplatform x\n"
REACH = "physical.reachable"


def frame(key: str, text: bytes = b"", state: State = State.DONE) -> Frame:
    return Frame(key, text, b"", 0, 1.0, 2.0, state=state)


def subjects(boot: bytes) -> Frame:
    return frame(SUBJECTS, FACTS % boot)


def stored(frames: Iterable[Frame], *, goes_on: bool = True) -> Stored:
    return Stored(lambda _host: frames, {}, goes_on)


def test_an_answer_counts_within_the_same_boot() -> None:
    told = [
        subjects(b"one"),
        frame("once: a", b"old"),
        subjects(b"two"),
        frame("once: b"),
        frame("once: lost", state=State.LOST),
        frame("once: late", state=State.TIMED_OUT),
        subjects(b"two"),
    ]
    assert set(stored(told).answers("h", "two")) == {"once: b", "once: late"}
    assert stored(told).answers("h", "one") == {}  # it was booted since
    assert stored(told).answers("h", "") == {}
    assert stored(told, goes_on=False).answers("h", "two") == {}


@pytest.mark.parametrize(
    "error", [Unreachable("tcp", "no", "look"), HostDeadline("late", "x"), HostError("bug", "y")]
)
def test_how_a_session_ended_comes_back(error: HostError) -> None:
    failure = failure_of(error)
    assert failure is not None
    again = ended_with(replace(healthy(1), failures={"h": failure}), "h")
    assert again is not None
    assert type(again) is type(error)
    assert (again.code, again.reason, again.remedy) == (error.code, error.reason, error.remedy)
    assert ended_with(healthy(1), "h") is None


@pytest.fixture
def prepared(tmp_path: Path) -> Prepared:
    return prepare(Choice(inventory=("a,b,c,",), only=(REACH,)), cwd=tmp_path)


def record_of(prepared: Prepared) -> Record:
    told = replace(
        info(),
        limit="",
        playbook=prepared.playbook.name,
        inventory_digest=prepared.inventory.digest,
    )
    return Record(told, plan_of(prepared), state="incomplete", reached={"a": "", "b": "tcp"},
                  failures={"b": Failure("Unreachable", "tcp", "refused")})  # fmt: skip


def test_hosts_that_ended_are_not_asked_again(prepared: Prepared) -> None:
    cut = {"c": [subjects(b"x")]}  # answered all there was to ask, and was cut off then
    known = of_run(record_of(prepared), prepared.climb.hosts, lambda host: cut.get(host, []))
    assert set(known.ended) == {"a", "b", "c"}
    assert isinstance(known.ended["b"], Unreachable)
    assert known.ended["a"] is known.ended["c"] is None


def test_a_host_that_passed_is_asked_where_nothing_is_recorded(prepared: Prepared) -> None:
    frames = {"a": [subjects(b"x")], "b": [frame("once: x")]}
    known = of_passed(["a", "b"], prepared.climb.hosts, lambda host: frames.get(host, []))
    assert set(known.ended) == {"a"}


def test_what_makes_two_runs_different_is_said(prepared: Prepared, tmp_path: Path) -> None:
    record = record_of(prepared)
    assert list(differences(record, prepared, plan_of(prepared), "")) == []
    other = prepare(Choice(inventory=("a,b,d,",), only=(REACH, "physical.nic-mtu")), cwd=tmp_path)
    told = "\n".join(differences(record, other, plan_of(other), "gpu"))
    assert "limit: none then, gpu now" in told
    assert "inventory digest: " in told
    assert "hosts only then: c\nhosts only now: d\nchecks only now: physical.nic-mtu" in told
    checks = tuple(replace(each, digest="0") for each in record.plan.checks)
    old = replace(record, plan=replace(record.plan, checks=checks))
    assert list(differences(old, prepared, plan_of(prepared), "")) == [
        f"check {REACH}: not the same file in both"
    ]


def test_hosts_with_any_trouble_have_not_passed() -> None:
    assert passed_hosts(incident()) == ("node-0001", "node-0012")
    assert passed_hosts(healthy(3)) == ("node-01", "node-02", "node-03")
    assert passed_hosts(replace(healthy(3), results=())) == ()
    assert passed_hosts(replace(healthy(2), state="incomplete")) == ("node-01", "node-02")


def test_what_follows_from_another_hosts_fault_has_not_passed() -> None:
    """When that is mended, what this host told then is no longer so."""
    record = replace(healthy(2), plan=plan(("a", "b"), CHECKS[:1]))
    lost = replace(verdict(Status.SKIP, Kind.BLOCKED), follows="tcp-forced")
    results = (result("a", CHECKS[0], lost), result("b", CHECKS[0], verdict(Status.PASS)))
    assert passed_hosts(replace(record, results=results)) == ("b",)


def test_what_was_waived_has_not_passed() -> None:
    """The waiver may have ended, and the fault may be mended: only the host can tell."""
    record = replace(healthy(2), plan=plan(("a", "b"), CHECKS[:1]))
    waived = verdict(Status.SKIP, Kind.WAIVED)
    results = (result("a", CHECKS[0], waived), result("b", CHECKS[0], verdict(Status.PASS)))
    assert passed_hosts(replace(record, results=results)) == ("b",)


def test_where_warnings_fail_now_a_warning_of_then_has_not_passed() -> None:
    record = replace(healthy(2), plan=plan(("a", "b"), CHECKS[:1]))
    warned = result("a", CHECKS[0], verdict(Status.WARN))
    record = replace(record, results=(warned, result("b", CHECKS[0], verdict(Status.PASS))))
    assert passed_hosts(record) == ("a", "b")
    assert passed_hosts(record, strict=True) == ("b",)


def test_a_verdict_on_a_group_is_of_its_hosts() -> None:
    wrong = verdict(Status.SKIP, Kind.UNDECIDABLE)
    record = replace(healthy(3), plan=plan(("a", "b", "c"), CHECKS[:1]))
    good = tuple(result(host, CHECKS[0], verdict(Status.PASS)) for host in ("a", "b", "c"))
    named = result("@gpu", CHECKS[1], replace(wrong, hosts=("b",)))
    assert passed_hosts(replace(record, results=(*good, named))) == ("a", "c")
    unnamed = result("@gpu", CHECKS[1], wrong)
    assert passed_hosts(replace(record, results=(*good, unnamed))) == ()


REACHED = {
    "known_hosts": (Path("k"), Path("l")),
    "key_files": (Path("id"),),
    "ssh_config": Path("c"),
    "host_keys": "accept-new",
    "user": "ops",
    "agent": True,
    "become": True,
}


def test_a_choice_is_filled_from_words(tmp_path: Path) -> None:
    whole = Choice(
        inventory=("a,", "b,"),
        playbook=tmp_path / "p.yaml",
        limit="a",
        only=("x",),
        skip=("y",),
        check_folders=(tmp_path,),
        waivers=(tmp_path / "w",),
        allow=frozenset({"load"}),
        shard=(2, 3),
        reach=words_of(REACHED),
    )
    assert Choice().filled(whole.words()) == whole
    assert Choice(limit="b", shard=(1, 3)).filled(whole.words()) == replace(
        whole, limit="b", shard=(1, 3)
    )
    mine = Choice(reach={"user": ("me",)}).filled(whole.words())
    assert settings_of(mine.reach) == {**REACHED, "user": "me"}
    assert words_of({"user": "", "agent": False, "ssh_config": None, "known_hosts": ()}) == {}


def test_shards_hold_every_host_once(tmp_path: Path) -> None:
    hosts = "h[01:10],"
    whole = prepare(Choice(inventory=(hosts,)), cwd=tmp_path)
    shards = [prepare(Choice(inventory=(hosts,), shard=(n, 3)), cwd=tmp_path) for n in (1, 2, 3)]
    names = [each.host.name for shard in shards for each in shard.climb.hosts]
    assert sorted(names) == list(whole.selected)
    assert {shard.selected for shard in shards} == {whole.selected}


@pytest.mark.parametrize("name", ["last", "last-green"])
def test_a_first_run_has_no_baseline_yet_and_begins(
    name: str, prepared: Prepared, tmp_path: Path
) -> None:
    """A nightly job that compares with the last green run must be able to begin."""
    delivery = Delivery(out=tmp_path / "runs")
    attempt = begin(prepared, Choice(), {}, delivery, baseline=name)
    assert attempt.baseline is None
    assert attempt.note.startswith("no baseline yet: ")
    with pytest.raises(RunFolderError, match="no run 'nowhere' in"):
        begin(prepared, Choice(), {}, delivery, baseline="nowhere")


def test_the_last_green_run_is_that_of_the_hosts_that_this_run_asks(
    prepared: Prepared, tmp_path: Path
) -> None:
    """Somebody's green look at one host, since, is no baseline of the fleet."""
    out, planned = tmp_path / "runs", plan_of(prepared)
    for run_id, hosts in (("20261128T150405Z-7f3a", "abc"), ("20261129T150405Z-7f3a", "b")):
        record = replace(
            healthy(1),
            info=replace(info(), run_id=run_id),
            plan=replace(planned, hosts=tuple(hosts), cases=dict.fromkeys(hosts, (REACH,))),
            results=tuple(result(host, REACH, verdict(Status.PASS)) for host in hosts),
        )
        folder = RunFolder.create(out, run_id)
        for event in events_of(record):
            folder.event(event)
        folder.render(record)
    attempt = begin(prepared, Choice(), {}, Delivery(out=out), baseline="last-green")
    assert attempt.info.settings["baseline"] == "20261128T150405Z-7f3a"
