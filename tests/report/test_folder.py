from __future__ import annotations

import json
import os
import stat
from dataclasses import replace
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from commcheck.collect.base import Frame, State
from commcheck.errors import NotKept, RunFolderError, UsageError
from commcheck.model import Kind, Status, Words
from commcheck.report import events
from commcheck.report.find import EVENTS
from commcheck.report.folder import RunFolder, file_name
from commcheck.report.record import Record
from tests.report.runs import CHECKS, healthy, incident, result, verdict

RUN = "20261129T150405Z-7f3a"


def written(base: Path, record: Record, run_id: str = RUN) -> RunFolder:
    folder = RunFolder.create(base, run_id)
    for event in events.events_of(record):
        folder.event(event)
    return folder


def modes(folder: Path) -> set[tuple[bool, int]]:
    return {
        (path.is_dir(), stat.S_IMODE(path.stat().st_mode)) for path in [folder, *folder.rglob("*")]
    }


def frame(stdout: bytes = b"", stderr: bytes = b"", key: str = "once: true") -> Frame:
    return Frame(key, stdout, stderr, 0, 1.5, 2.25)


def test_a_run_is_written_and_found_again(tmp_path: Path) -> None:
    folder = written(tmp_path, incident())
    assert folder.record() == incident()
    folder.render(incident())
    folder.keep("node-0001", frame(b"x"))
    assert sorted(str(path.relative_to(folder.path)) for path in folder.path.rglob("*.*")) == [
        EVENTS,
        "frames/node-0001.ndjson",
        "junit/TEST-commcheck-library.xml",
        "junit/TEST-commcheck-physical.xml",
        "junit/TEST-commcheck-runtime.xml",
        "metrics.prom",
        "report.html",
        "results.json",
        "runbook.md",
        "summary.md",
    ]
    assert modes(folder.path) == {(True, 0o700), (False, 0o600)}
    assert json.loads((folder.path / "results.json").read_bytes())["run"]["id"] == RUN
    assert (tmp_path / "latest").readlink() == Path(RUN)


def test_the_runbook_beside_a_report_has_the_sites_own_sections(tmp_path: Path) -> None:
    mine = Words(
        '<a id="physical-nic-mtu"></a>\n\n### Ours (`physical.nic-mtu`)\n\nAsk the site.\n',
        '<a id="physical-nic-mtu"></a>\n\n### 站点（`physical.nic-mtu`）\n\n询问站点。\n',
    )
    new = Words(
        '<a id="physical-swap-off"></a>\n\n### Swap (`physical.swap-off`)\n\nNone.\n',
        '<a id="physical-swap-off"></a>\n\n### 交换（`physical.swap-off`）\n\n无。\n',
    )
    plan = replace(incident().plan, runbook={"physical-nic-mtu": mine, "physical-swap-off": new})
    folder = written(tmp_path, replace(incident(), plan=plan))
    record = folder.record()
    assert record.plan.runbook == plan.runbook
    folder.render(record, lang="zh")
    for name, words in (("runbook.md", "Ask the site."), ("runbook.zh.md", "询问站点。")):
        book = (folder.path / name).read_text(encoding="utf-8")
        before, _, rest = book.partition('<a id="physical-nic-mtu"></a>')
        assert rest.split("\n\n")[2] == words
        assert "ip link set" not in rest.partition('<a id="physical-')[0]
        layer, _, above = rest.partition('\n<a id="physical-swap-off"></a>')
        assert '<a id="physical-reachable"></a>' in before + layer
        assert "\n## " not in layer
        assert above.partition("\n## ")[2].startswith(("Layer 2", "第 2 层"))


def test_other_modes_hold_for_all(tmp_path: Path) -> None:
    folder = RunFolder.create(tmp_path, RUN, mode=0o750)
    folder.keep("a", frame())
    assert modes(folder.path) == {(True, 0o750), (False, 0o640)}


def test_rendering_again_replaces_all(tmp_path: Path) -> None:
    folder = written(tmp_path, incident())
    folder.render(incident())
    before = {path: path.read_bytes() for path in folder.path.rglob("*") if path.is_file()}
    folder.render(folder.record())
    assert {path: path.read_bytes() for path in folder.path.rglob("*") if path.is_file()} == before
    physical = replace(
        incident(), results=(), plan=replace(incident().plan, cases={"node-0001": ("physical.a",)})
    )
    folder.render(physical)
    assert [path.name for path in (folder.path / "junit").iterdir()] == [
        "TEST-commcheck-physical.xml"
    ]


# --- frames -------------------------------------------------------------------------------------


@given(st.lists(st.tuples(st.binary(), st.text(max_size=9), st.sampled_from(State)), max_size=4))
@settings(max_examples=40)
def test_frames_come_back_byte_for_byte(
    tmp_path_factory: pytest.TempPathFactory, some: list[tuple[bytes, str, State]]
) -> None:
    folder = RunFolder.create(tmp_path_factory.mktemp("runs"), RUN)
    frames = [
        Frame(f"start: {key}", data, data[::-1], None, 0.1, 0.2, truncated=True, state=state)
        for data, key, state in some
    ]
    for each in frames:
        folder.keep("host", each)
    assert list(folder.frames("host")) == frames
    assert list(folder.frames("another")) == []


def test_secrets_never_reach_the_disk(tmp_path: Path) -> None:
    folder = RunFolder.create(tmp_path, RUN)
    folder.keep("a", frame(b"WANDB_API_KEY=hush\n", b"\xffpassword: hush\n"))
    (found,) = folder.frames("a")
    assert (found.stdout, found.stderr) == (b"WANDB_API_KEY=***\n", b"\xffpassword: ***\n")
    said = "it said API_TOKEN=hush"
    wrong = (
        replace(verdict(Status.FAIL, reason=said), measured={"said": said}),
        verdict(Status.ERROR, kind=Kind.CHECK, reason=said),
    )
    results = tuple(map(result, ("node-0001", "node-0002"), CHECKS, wrong))
    told = replace(incident(), notes=(said,), results=results)
    for event in events.events_of(told):
        folder.event(event)
    folder.render(told)
    for path in folder.path.rglob("*"):
        assert path.is_dir() or b"hush" not in path.read_bytes(), path


def test_a_kill_costs_no_more_than_the_line_being_written(tmp_path: Path) -> None:
    folder = written(tmp_path, healthy(2))
    for number in range(3):
        folder.keep("a", frame(f"{number} 中\xff".encode()))
    path = folder.path / "frames" / "a.ndjson"
    whole = path.read_bytes()
    for size in range(len(whole)):
        path.write_bytes(whole[:size])
        assert len(list(folder.frames("a"))) == whole[:size].count(b"\n")
    events_path = folder.path / EVENTS
    data = events_path.read_bytes()
    events_path.write_bytes(data[:-20])
    again = RunFolder.open(RUN, tmp_path)
    assert again.record().state == "incomplete"
    # What is appended to it later does not run into the half line.
    path.write_bytes(whole[:-20])
    again.keep("a", frame(b"later"))
    again.event(events.note_event("later"))
    assert [each.stdout for each in again.frames("a")][2:] == [b"later"]
    assert again.record().notes[-1] == "later"


def test_what_is_no_frame_is_refused(tmp_path: Path) -> None:
    folder = RunFolder.create(tmp_path, RUN)
    folder.keep("a", frame())
    path = folder.path / "frames" / "a.ndjson"
    path.write_bytes(b"garbage\n" + path.read_bytes())
    with pytest.raises(RunFolderError, match=r"a\.ndjson:1: no frame"):
        list(folder.frames("a"))


@given(st.text(min_size=1), st.text(min_size=1))
@settings(max_examples=60)
def test_host_file_names_are_safe_and_differ(one: str, other: str) -> None:
    name = file_name(one)
    assert len(name) <= 200
    assert "/" not in name
    assert "\0" not in name
    assert not name.startswith(".")
    assert (file_name(other) == name) is (one == other)


@pytest.mark.parametrize("host", ["../../etc/passwd", "..", ".", "a/b", "x" * 400, "/abs"])
def test_a_hostile_host_name_stays_in_its_folder(tmp_path: Path, host: str) -> None:
    folder = RunFolder.create(tmp_path, RUN)
    folder.keep(host, frame(b"x"))
    assert len(list(folder.frames(host))) == 1
    assert len(list((folder.path / "frames").iterdir())) == 1
    assert sorted(path.name for path in tmp_path.iterdir()) == [RUN, "latest"]


# --- where to, and where from -------------------------------------------------------------------


def test_bases_that_cannot_hold_a_run(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    with pytest.raises(UsageError, match="is a file, want a folder"):
        RunFolder.create(tmp_path / "file", RUN)
    with pytest.raises(UsageError, match="cannot write reports here"):
        RunFolder.create(tmp_path / "file" / "deeper", RUN)
    with pytest.raises(UsageError, match="cannot write reports here"):
        RunFolder.create(Path("/proc/nowhere"), RUN)
    RunFolder.create(tmp_path / "new" / "deep", RUN)
    with pytest.raises(UsageError, match="exists already"):
        RunFolder.create(tmp_path / "new" / "deep", RUN)


def test_runs_are_found_by_name(tmp_path: Path) -> None:
    ids = ["20261129T150405Z-7f3a", "20261129T150405Z-9bbb", "20261130T000000Z-0000"]
    for run_id in ids:
        written(tmp_path, healthy(1), run_id)
    (tmp_path / "other").mkdir()

    def found(name: str) -> str:
        return RunFolder.open(name, tmp_path).path.name

    assert found(ids[0]) == ids[0]
    assert found("20261130") == ids[2]
    assert found("last") == ids[2]
    assert found(str(tmp_path / ids[1])) == ids[1]
    (tmp_path / "latest").unlink()
    assert found("last") == ids[2]
    for name, problem in [
        ("20261129", "could be any of"),
        ("2027", "no run '2027'"),
        ("other", "no run 'other'"),
        ("", "no run ''"),
        ("../..", "no run"),
    ]:
        with pytest.raises(RunFolderError, match=problem):
            found(name)
    with pytest.raises(RunFolderError, match="no folder of runs"):
        RunFolder.open("last", tmp_path / "nowhere")


def test_a_latest_that_is_no_link_of_ours_is_left_alone(tmp_path: Path) -> None:
    (tmp_path / "latest" / "mine").mkdir(parents=True)
    written(tmp_path, healthy(1))
    assert (tmp_path / "latest" / "mine").is_dir()
    assert RunFolder.open("last", tmp_path).path.name == RUN
    assert [path.name for path in tmp_path.iterdir() if path.name.startswith(".")] == []


# --- copies for CI ------------------------------------------------------------------------------


def test_only_our_own_former_files_go_away(tmp_path: Path) -> None:
    target = tmp_path / "junit"
    RunFolder.clear_junit(target)
    target.mkdir()
    kept = ["TEST-other.xml", "TEST-commcheck-physical.xml.bak", "TEST-commcheck-moon.xml"]
    for name in [*kept, "TEST-commcheck-physical.xml", "TEST-commcheck-application-12.xml"]:
        (target / name).write_text("<old/>")
    RunFolder.clear_junit(target)
    assert sorted(path.name for path in target.iterdir()) == sorted(kept)
    (target / "TEST-commcheck-application.xml").write_text("<old/>")
    folder = written(tmp_path / "runs", incident())
    folder.render(incident())
    folder.copy_junit(target)
    ours = {path.name for path in (folder.path / "junit").iterdir()}
    assert {path.name for path in target.iterdir()} == ours | set(kept)
    for name in ours:
        assert (target / name).read_bytes() == (folder.path / "junit" / name).read_bytes()


def test_a_junit_target_that_is_no_folder(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    with pytest.raises(UsageError, match="cannot remove former JUnit files"):
        RunFolder.clear_junit(tmp_path / "file")
    folder = written(tmp_path / "runs", healthy(1))
    folder.render(healthy(1))
    with pytest.raises(UsageError, match="cannot write JUnit files"):
        folder.copy_junit(tmp_path / "file")


def test_reports_are_replaced_whole_or_not_at_all(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    folder = written(tmp_path, healthy(1))
    folder.render(healthy(1))
    before = (folder.path / "results.json").read_bytes()

    def full(descriptor: int) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(os, "fsync", full)
    with pytest.raises(UsageError, match="No space left on device"):
        folder.render(incident())
    assert (folder.path / "results.json").read_bytes() == before
    assert not list(folder.path.rglob("*.tmp"))


def test_a_link_in_a_file_s_place_is_not_followed(tmp_path: Path) -> None:
    folder = RunFolder.create(tmp_path, RUN)
    victim = tmp_path / "victim"
    victim.write_text("mine")
    (folder.path / EVENTS).symlink_to(victim)
    with pytest.raises(NotKept, match="symbolic links") as caught:
        folder.event(events.note_event("x"))
    # By its path: the folder of reports may be another one than --resume looks into.
    assert str(caught.value).endswith(f"go on with run --resume {folder.path}")
    assert victim.read_text() == "mine"


def test_a_pipe_in_a_file_s_place_is_told(tmp_path: Path) -> None:
    """A run folder may come from anywhere. Nobody waits for what a pipe's writer would say."""
    folder = written(tmp_path, healthy(1))
    (folder.path / "frames").mkdir()
    for name in ("inventory.json", "frames/node-0001.ndjson", "frames/node-0002.ndjson"):
        os.mkfifo(folder.path / name)
    with pytest.raises(RunFolderError, match="a named pipe"):
        folder.inventory()
    with pytest.raises(RunFolderError, match="a named pipe"):
        list(folder.frames("node-0001"))
    with pytest.raises(NotKept, match=r"node-0002\.ndjson is no file"):
        folder.keep("node-0002", frame(b"x"))


def test_a_linked_folder_leads_nowhere(tmp_path: Path) -> None:
    folder = written(tmp_path, healthy(1))
    other = tmp_path / "other"
    other.mkdir()
    for name in ("frames", "junit"):
        (folder.path / name).symlink_to(other)
    with pytest.raises(NotKept, match="frames is a link"):
        folder.keep("node-0001", frame(b"x"))
    with pytest.raises(UsageError, match="junit is a link"):
        folder.render(healthy(1))
    assert list(other.iterdir()) == []
