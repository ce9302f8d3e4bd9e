"""The logs of ranks that run: found and read by a real sh, on a made-up /proc."""

from __future__ import annotations

import subprocess
from pathlib import Path

import pytest

from commcheck.command import Output
from commcheck.errors import CommandFailed
from commcheck.nccl.job_logs import HALF_BYTES, SCRIPT, JobLogs, facts_of, parse
from tests.nccl.made import job, ranks
from tests.nccl.test_job_files import process

LINE = "gpu-01:100:200 [0] NCCL INFO Using network IB\n"


def ask(proc: Path) -> JobLogs:
    done = subprocess.run(
        ["sh", "-c", SCRIPT, "sh", f"{proc}/"], capture_output=True, text=True, check=False
    )
    assert not done.stderr
    return parse(Output(done.stdout, done.stderr, done.returncode))


def log_of(proc: Path, pid: int, name: str, text: str, given: str, host: str = "gpu-01.x") -> None:
    folder = process(proc, pid, {"NCCL_DEBUG_FILE": given, "HOSTNAME": host})
    path = folder / "root" / name
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text)


def test_names_are_filled_in_as_nccl_does(tmp_path: Path) -> None:
    log_of(tmp_path, 41, "log/n.gpu-01.41%", LINE, "/log/n.%h.%p%%")
    log_of(tmp_path, 42, "l.%r", LINE, "/l.%r")
    folder = process(tmp_path, 4711, {"NCCL_DEBUG_FILE": "rank.%p", "HOSTNAME": "pod-a"})
    (folder / "status").write_text("NSpid:\t4711\t7\n")
    (folder / "cwd" / "rank.7").write_text(f"step 1\npassword=secret\n{LINE}")
    found = ask(tmp_path)
    assert [(log.name, log.text) for log in found.logs] == [
        ("/log/n.gpu-01.41%", LINE),
        ("/l.%r", LINE),
        ("rank.7", LINE),
    ]
    assert all(log.age_s is not None and log.age_s < 60 for log in found.logs)
    assert not any(log.truncated for log in found.logs)


def test_a_file_of_several_ranks_is_read_once(tmp_path: Path) -> None:
    log_of(tmp_path, 41, "n.log", LINE, "/n.log")
    process(tmp_path, 42, {"NCCL_DEBUG_FILE": "/n.log"})
    (tmp_path / "42" / "root").rmdir()
    (tmp_path / "42" / "root").symlink_to("../41/root")
    assert len(ask(tmp_path).logs) == 1


def test_what_is_not_there_is_told(tmp_path: Path) -> None:
    process(tmp_path, 41, {"NCCL_DEBUG_FILE": "/none.%p"})
    process(tmp_path, 42, {})
    assert ask(tmp_path) == JobLogs((), ("/none.41",))
    assert parse(Output("end\n")) == JobLogs()
    with pytest.raises(CommandFailed):
        parse(Output("#commcheck: file 1 2 /x\n", rc=0))


@pytest.mark.parametrize("made_up", ["/proc/version", "/sys/kernel/notes"])
def test_what_the_kernel_makes_up_is_never_read(tmp_path: Path, made_up: str) -> None:
    """As root a name from a job could else drain /proc/kmsg."""
    process(tmp_path, 41, {"NCCL_DEBUG_FILE": "/log"})
    (tmp_path / "41" / "root" / "log").symlink_to(made_up)
    assert ask(tmp_path) == JobLogs((), ("/log",))


def test_of_a_large_log_both_ends_are_read(tmp_path: Path) -> None:
    lines = [f"h:1:2 [0] NCCL INFO line {number:06d} {'x' * 80}\n" for number in range(15_000)]
    log_of(tmp_path, 41, "n.log", "".join(lines), "/n.log")
    (log,) = ask(tmp_path).logs
    kept = log.text.splitlines(keepends=True)
    assert log.truncated
    assert set(kept) <= set(lines)
    assert (kept[0], kept[-1]) == (lines[0], lines[-1])
    assert HALF_BYTES < len(log.text) <= 2 * HALF_BYTES


def test_the_facts_of_all_files_are_one_job(tmp_path: Path) -> None:
    text = job(ranks(("gpu-01",), 2))
    for pid in (100, 101):
        mine = "".join(line for line in text.splitlines(True) if f":{pid}:" in line)
        log_of(tmp_path, pid, f"n.{pid}", mine, "/n.%p", host="gpu-01")
    found = facts_of(ask(tmp_path))
    (comm,) = found.comms.values()
    assert (len(comm.members), comm.nranks, len(found.files)) == (2, 2, 2)
    assert found.live
