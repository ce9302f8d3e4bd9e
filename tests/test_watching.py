"""Readings at both ends of a visit, the window between them, and those of an earlier run."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from commcheck.check import (
    Check,
    Nothing,
    Reader,
    Unread,
    Watched,
    first_of,
    limit,
    limits_of,
    may_watch,
    passed,
    watches,
)
from commcheck.collect.base import SUBJECTS, Frame, State
from commcheck.command import Command, Output
from commcheck.discover import bundled_folder, discover
from commcheck.earlier import MOST_RUNS, EarlierRuns, watched
from commcheck.errors import ParseError, Position
from commcheck.judge import judge_host
from commcheck.model import Finding, Host, Machine, Origin, Verdict, Wanted, Words
from commcheck.plan import MOST_WINDOW_S, WINDOW, Asked, requests
from commcheck.playbook import load
from commcheck.plays import Entry
from commcheck.report.events import run_event
from commcheck.report.folder import RunFolder
from tests.report.runs import info

WORDS = Words("x", "x")
HOST = Host("gpu-01")
BOOT = "0b5c2c5e-0000-4000-8000-000000000001"
MACHINE = Machine("gpu-01", boot_id=BOOT)


def parse(output: Output) -> int:
    if not output.text.isdigit():
        raise ParseError("count", output.text)
    return int(output.text)


COUNTER = Reader("count", (Command(("count",)),), parse, varies=True)
OTHER = Reader("other", (Command(("other",)),), parse)


@dataclass(frozen=True, slots=True)
class Seen:
    count: Watched[int] = watches(first_of(OTHER, COUNTER))


@dataclass(frozen=True, slots=True)
class Limits:
    window_s: float = limit(0.0, unit="s", source="none")


def judge(seen: Seen, _machine: Machine, _want: Nothing, _limits: Limits) -> Verdict:
    visit, since = seen.count.visit, seen.count.since
    numbers = {"visit": [visit.first, visit.last, visit.seconds]}
    if since is not None:
        numbers["since"] = [since.first, since.last, since.seconds]
    return passed("read", measured=numbers)


CHECK = Check(
    id="physical.count",
    title=WORDS,
    subject=Machine,
    seen=Seen,
    limits=Limits,
    judge=judge,
)


def frame(key: str, count: str, at: float, rc: int = 0) -> Frame:
    return Frame(key, count.encode(), b"", rc, at, at + 0.1)


VISIT = [frame("start: count", "3", 900.0), frame("end: count", "5", 900.5)]


def judged(frames: Sequence[Frame]) -> Finding:
    by_key = {each.key: each for each in frames}
    (result,) = judge_host(HOST, [Asked(CHECK)], MACHINE, by_key, None, lambda data: data.decode())
    return result.worst


def asked(window_s: float) -> Asked:
    given: Wanted[object] = Wanted(window_s, Origin("incident.yaml:6"))
    params = {"window_s": given}
    return Asked(CHECK, entry=Entry(check=CHECK.id, position=Position("x", 1), params=params))


def test_commands_run_at_both_ends() -> None:
    keys = [each.key for each in requests(HOST, MACHINE, [Asked(CHECK)])]
    assert keys == ["start: other", "start: count", "end: other", "end: count"]


def test_the_window_is_waited_once_between_the_two() -> None:
    made = requests(HOST, MACHINE, [asked(10), asked(4.5)])
    assert [each.key for each in made if each.at == "wait"] == ["wait: sleep 10"]
    phases = [each.at for each in made]
    assert phases == sorted(phases, key=["start", "once", "wait", "end"].index)
    assert all(each.command.timeout_s > 10 for each in made if each.at == "wait")


def test_the_window_of_the_inventory_and_its_end() -> None:
    host = Host("gpu-01", {"commcheck_thresholds": {"physical.count.window_s": 9_999}})
    waits = [each for each in requests(host, MACHINE, [Asked(CHECK)]) if each.at == "wait"]
    assert [each.command.argv for each in waits] == [("sleep", f"{MOST_WINDOW_S:g}")]


def test_both_readings_and_the_time_between_them() -> None:
    finding = judged(VISIT)
    assert finding.verdict.measured == {"visit": [3, 5, 0.5]}
    used = {each.key: each.used for each in finding.evidence}
    assert used == {"start: count": True, "end: count": True}


def test_one_end_alone_is_an_error() -> None:
    assert judged(VISIT[:1]).verdict.error == "CommandNotRun"
    broken = [*VISIT[:1], frame("end: count", "5", 900.5, rc=127)]
    assert judged(broken).verdict.error in ("CommandMissing", "CommandNotRun")


def test_an_earlier_reading_is_a_longer_window() -> None:
    finding = judged([*VISIT, frame("earlier: count", "1", 100.5)])
    assert finding.verdict.measured == {"visit": [3, 5, 0.5], "since": [1, 5, 800.0]}
    assert "earlier: count" in {each.key for each in finding.evidence}


def test_an_earlier_reading_that_is_none_changes_nothing() -> None:
    for odd in (frame("earlier: count", "?", 100.5), frame("earlier: count", "1", 950.0)):
        assert judged([*VISIT, odd]).verdict.measured == {"visit": [3, 5, 0.5]}


@dataclass(frozen=True, slots=True)
class SeenPerhaps:
    count: Watched[int] | Unread = may_watch(COUNTER)


def test_an_optional_one_is_left_to_the_judge() -> None:
    def judge_unread(
        seen: SeenPerhaps, _machine: Machine, _want: Nothing, _limits: Nothing
    ) -> Verdict:
        return passed("unread" if isinstance(seen.count, Unread) else "read")

    check = Check(
        id="physical.perhaps", title=WORDS, subject=Machine, seen=SeenPerhaps, judge=judge_unread
    )
    (result,) = judge_host(HOST, [Asked(check)], MACHINE, {}, None, lambda data: data.decode())
    assert result.worst.verdict.reason == "unread"


def test_the_incident_playbook_watches_and_the_default_one_does_not() -> None:
    found = discover(cwd=Path("/"))
    windows = {}
    for name in ("default", "incident", "maintenance"):
        playbook = load(bundled_folder("playbooks") / f"{name}.yaml", found)
        entries = {each.check: each for play in playbook.plays for each in play.checks}
        windows[name] = {
            entries[one.id].params["window_s"].value if entries[one.id].params else 0
            for one in found
            if WINDOW in limits_of(one.check.limits)
        }
    assert windows == {"default": {0}, "incident": {10}, "maintenance": {0}}


# --- runs of before -----------------------------------------------------------------------------


def stored(base: Path, run_id: str, *frames: Frame, boot_id: str = BOOT) -> RunFolder:
    folder = RunFolder.create(base, run_id)
    folder.event(run_event(info()))
    folder.keep("gpu-01", frame(SUBJECTS, f"kernel 5.15\nboot_id {boot_id}\nuid 0\n", 1.0))
    for each in frames:
        folder.keep("gpu-01", each)
    return folder


def test_only_what_ran_at_both_ends_is_looked_for() -> None:
    keys = ["start: count", "end: count", "once: x", "end: y", "start: z", SUBJECTS]
    assert watched(keys) == ("end: count",)


def test_the_newest_reading_of_the_same_boot_is_taken(tmp_path: Path) -> None:
    stored(tmp_path, "20261101T000000Z-aaaa", frame("end: count", "1", 100.0))
    stored(tmp_path, "20261102T000000Z-aaaa", frame("end: count", "2", 200.0))
    stored(tmp_path, "20261103T000000Z-aaaa")  # never came to its end
    now = RunFolder.create(tmp_path, "20261104T000000Z-aaaa")
    stored(tmp_path, "20261105T000000Z-aaaa", frame("end: count", "9", 900.0))
    (found,) = EarlierRuns.beside(now.path).frames("gpu-01", BOOT, ["end: count"])
    assert found == frame("earlier: count", "2", 200.0)


def test_analyses_of_files_hide_no_run_of_before(tmp_path: Path) -> None:
    stored(tmp_path, "20261101T000000Z-aaaa", frame("end: count", "1", 100.0))
    for number in range(MOST_RUNS):
        RunFolder.create(tmp_path, f"20261102T00000{number}Z-aaaa").event(run_event(info()))
    runs = EarlierRuns.beside(tmp_path / "20261103T000000Z-aaaa")
    assert len(runs.frames("gpu-01", BOOT, ["end: count"])) == 1


def test_after_a_reboot_and_for_other_hosts_there_is_none(tmp_path: Path) -> None:
    stored(tmp_path, "20261101T000000Z-aaaa", frame("end: count", "1", 100.0), boot_id="other")
    runs = EarlierRuns.beside(tmp_path / "20261102T000000Z-aaaa")
    assert runs.frames("gpu-01", BOOT, ["end: count"]) == ()
    assert runs.frames("gpu-02", "other", ["end: count"]) == ()
    assert runs.frames("gpu-01", "", ["end: count"]) == ()
    assert len(runs.frames("gpu-01", "other", ["end: count"])) == 1


def test_a_command_that_timed_out_then_and_a_damaged_file_are_none(tmp_path: Path) -> None:
    late = replace(frame("end: count", "", 100.0, rc=124), state=State.TIMED_OUT)
    stored(tmp_path, "20261101T000000Z-aaaa", late)
    broken = stored(tmp_path, "20261102T000000Z-aaaa", frame("end: count", "1", 100.0))
    (path,) = (broken.path / "frames").iterdir()
    path.write_bytes(path.read_bytes() + b'{"key":"end: x"}\n')
    runs = EarlierRuns.beside(tmp_path / "20261103T000000Z-aaaa")
    assert runs.frames("gpu-01", BOOT, ["end: count"]) == ()


def test_no_folder_of_runs(tmp_path: Path) -> None:
    assert EarlierRuns.beside(tmp_path / "none" / "run").frames("gpu-01", BOOT, ["end: x"]) == ()
