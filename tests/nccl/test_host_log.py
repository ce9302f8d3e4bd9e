"""The part of a log that is picked out on the host: run by a real sh, on real files."""

from __future__ import annotations

import subprocess
from pathlib import Path

import pytest

from commcheck.command import Output
from commcheck.errors import CommandFailed, Unjudgeable
from commcheck.model import Machine
from commcheck.nccl.host_log import HALF_BYTES, HOST_LOG, HostLog, parse

LINE = "gpu-01:100:200 [0] NCCL INFO Using network IB\n"


def fetch(pattern: Path | str) -> HostLog:
    (command,) = HOST_LOG.commands
    argv = command.on(Machine("gpu-01", nccl_log=str(pattern))).argv
    done = subprocess.run(argv, capture_output=True, text=True, check=False)
    return parse(Output(done.stdout, done.stderr, done.returncode))


def test_only_lines_of_the_library_leave_the_host(tmp_path: Path) -> None:
    (tmp_path / "nccl.gpu-01.100").write_text(f"step 1\npassword=secret\n{LINE}loss 2.0\n")
    (tmp_path / "nccl.gpu-01.101").write_text(LINE.replace("100", "101"))
    log = fetch(tmp_path / "nccl.*")
    assert log == HostLog(LINE + LINE.replace("100", "101"), truncated=False)


def test_a_log_without_such_a_line_is_empty_and_no_error(tmp_path: Path) -> None:
    (tmp_path / "log").write_text("step 1\n")
    assert fetch(tmp_path / "log") == HostLog("", truncated=False)


def test_of_a_large_log_both_ends_are_kept_in_whole_lines(tmp_path: Path) -> None:
    lines = [f"h:1:2 [0] NCCL INFO line {number:07d} {'x' * 80}\n" for number in range(180_000)]
    (tmp_path / "log").write_text("".join(lines))
    log = fetch(tmp_path / "log")
    assert log.truncated
    kept = log.text.splitlines(keepends=True)
    assert set(kept) <= set(lines)
    assert (kept[0], kept[-1]) == (lines[0], lines[-1])
    assert 2 * HALF_BYTES - 400 < len(log.text) < 2 * HALF_BYTES


def test_no_file_is_an_error_and_an_unreadable_one_makes_it_incomplete(tmp_path: Path) -> None:
    with pytest.raises(CommandFailed, match="no file is called /"):
        fetch(tmp_path / "none.*")
    (tmp_path / "log.1").write_text(LINE)
    (tmp_path / "log.2").mkdir()
    assert fetch(tmp_path / "log.*") == HostLog(LINE, truncated=True)


@pytest.mark.parametrize(
    "pattern",
    ["relative/log", "/log; touch /tmp/x", "/log$(id)", "/a b", "/../x", "-f", "/`id`", "/log\nx"],
)
def test_what_a_shell_could_run_is_no_pattern(pattern: str) -> None:
    with pytest.raises(Unjudgeable):
        HOST_LOG.commands[0].on(Machine("gpu-01", nccl_log=pattern))
