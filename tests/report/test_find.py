"""Which run a name means."""

from __future__ import annotations

import fcntl
from dataclasses import replace
from pathlib import Path

import pytest

from commcheck.afterwards import report
from commcheck.attempts import before
from commcheck.errors import RunFolderError
from commcheck.report import events
from commcheck.report.find import NoneYet, files_below, find, last_green
from commcheck.report.folder import RunFolder
from commcheck.report.record import Record
from tests.report.runs import healthy, incident

IDS = [f"2026112{day}T150405Z-7f3a" for day in range(4)]


def run(base: Path, run_id: str, record: Record) -> RunFolder:
    record = replace(record, info=replace(record.info, run_id=run_id))
    folder = RunFolder.create(base, run_id)
    for event in events.events_of(record):
        folder.event(event)
    folder.render(record)
    return folder


def test_the_last_green_run_ended_by_itself_with_exit_code_0(tmp_path: Path) -> None:
    run(tmp_path, IDS[0], healthy(1))
    run(tmp_path, IDS[1], incident())
    run(tmp_path, IDS[2], replace(healthy(1), state="interrupted"))
    RunFolder.create(tmp_path, IDS[3]).event(events.run_event(healthy(1).info))
    assert find("last-green", tmp_path) == IDS[0]
    assert find("last", tmp_path) == IDS[3]
    (tmp_path / IDS[0] / "results.json").write_text("[]")
    with pytest.raises(RunFolderError, match=r"no run in .* ended with exit code 0"):
        find("last-green", tmp_path)


def test_where_hosts_are_meant_an_analysis_of_files_is_no_run(tmp_path: Path) -> None:
    """``run --again last`` after ``analyze log`` is about the hosts, not about the log."""
    analysis = replace(healthy(1), info=replace(healthy(1).info, noun="file"))
    run(tmp_path, IDS[0], healthy(1))
    run(tmp_path, IDS[1], incident())
    run(tmp_path, IDS[2], analysis)
    assert (find("last", tmp_path), find("last-green", tmp_path)) == (IDS[2], IDS[2])
    assert find("last", tmp_path, of_hosts=True) == IDS[1]
    assert find("last-green", tmp_path, of_hosts=True) == IDS[0]
    with pytest.raises(RunFolderError, match=f"{IDS[2]}: an analysis of files: no host was asked"):
        before("", IDS[2], tmp_path, hold=False)
    told = before("", "last", tmp_path, hold=False)
    assert told is not None
    assert told.run_id == IDS[1]
    RunFolder.create(tmp_path, IDS[3])
    with pytest.raises(RunFolderError, match=f"{IDS[3]}: the latest run was killed before"):
        find("last", tmp_path, of_hosts=True)


def test_a_green_run_of_one_host_or_one_check_is_no_baseline_of_a_fleet(tmp_path: Path) -> None:
    whole = healthy(3)
    hosts, checks = whole.plan.hosts, [each.id for each in whole.plan.checks]
    run(tmp_path, IDS[0], whole)
    run(tmp_path, IDS[1], whole)
    run(tmp_path, IDS[2], healthy(1))
    one = replace(whole, plan=replace(whole.plan, checks=whole.plan.checks[:1]))
    run(tmp_path, IDS[3], one)
    assert find("last-green", tmp_path) == IDS[3]
    assert last_green(tmp_path, hosts, checks) == IDS[1]
    assert last_green(tmp_path, hosts[:1], checks) == IDS[2]
    assert last_green(tmp_path, hosts, checks[:1]) == IDS[3]
    assert last_green(tmp_path, (*hosts, "new-01"), checks) == IDS[1]
    with pytest.raises(NoneYet, match="that asked these hosts the same ended with exit code 0"):
        last_green(tmp_path, ["elsewhere"], checks)


def test_files_of_runs_are_left_out_and_others_of_their_name_are_not(tmp_path: Path) -> None:
    run(tmp_path / "reports", IDS[0], healthy(1))
    RunFolder.create(tmp_path / "reports", IDS[1]).hold()  # killed before it wrote anything
    others = [tmp_path / "job" / "events.ndjson", tmp_path / "job" / "nccl.log"]
    others[0].parent.mkdir()
    for path in others:
        path.write_text("{}\n")
    assert files_below(tmp_path) == others


def test_an_older_run_never_stands_for_one_that_left_nothing(tmp_path: Path) -> None:
    run(tmp_path, IDS[0], healthy(1))
    RunFolder.create(tmp_path, IDS[1])
    with pytest.raises(RunFolderError, match=f"{IDS[1]}: the latest run was killed before"):
        find("last", tmp_path)
    (tmp_path / "latest").unlink()
    with pytest.raises(RunFolderError, match="killed before"):
        find("last", tmp_path)
    run(tmp_path, IDS[2], healthy(1))
    assert find("last", tmp_path) == IDS[2]


def test_a_run_is_written_by_one_process_alone(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    folder = run(tmp_path, IDS[0], healthy(1))
    with (folder.path / "events.ndjson").open() as other:
        fcntl.flock(other, fcntl.LOCK_EX)
        assert report(run_name="last", out=tmp_path) == 0
        assert f"{IDS[0]}: this run is still going on" in capsys.readouterr().err
        with pytest.raises(RunFolderError, match="still going on"):
            RunFolder.open(IDS[0], tmp_path).hold()
    assert report(run_name="last", out=tmp_path) == 0
    assert capsys.readouterr().err == ""
    RunFolder.open(IDS[0], tmp_path).hold()


def test_holding_drops_the_half_line_that_a_kill_left(tmp_path: Path) -> None:
    folder = run(tmp_path, IDS[0], healthy(1))
    path = folder.path / "events.ndjson"
    whole = path.read_bytes()
    path.write_bytes(whole.removesuffix(b"\n"))  # all of an event but its end
    RunFolder.open(IDS[0], tmp_path).hold()
    assert path.read_bytes() == whole[: whole.removesuffix(b"\n").rfind(b"\n") + 1]
    assert RunFolder.open(IDS[0], tmp_path).record().state == "incomplete"
