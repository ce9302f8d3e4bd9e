"""Standard streams that take nothing: closed, full, or of a terminal that is gone."""

from __future__ import annotations

import os
import pty
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from commcheck.console import within

COMMCHECK = Path(sys.executable).parent / "commcheck"
FULL = "commcheck: error: stdout: No space left on device; what was to be printed is not whole\n"


def run(words: str, where: str, tmp_path: Path, **more: str) -> tuple[int, str, str]:
    """``commcheck WORDS`` with the shell's redirections, and more in its environment."""
    ran = subprocess.run(
        ["sh", "-c", f"exec {COMMCHECK} {words} {where}"],
        capture_output=True,
        text=True,
        cwd=tmp_path,
        env={"PATH": os.environ["PATH"], "HOME": str(tmp_path), "COMMCHECK_DEBUG": "1", **more},
        check=False,
        timeout=60,
    )
    assert "Traceback" not in ran.stderr, ran.stderr
    assert "Exception" not in ran.stderr, ran.stderr
    return ran.returncode, ran.stdout, ran.stderr


LINT = "lint nothing.yaml"  # one line on stderr, exit code 2
ONE = ("-t", "physical.pfc-enabled")


@pytest.mark.parametrize(
    "words",
    [
        "--version",
        *(
            pytest.param(each, marks=pytest.mark.slow)
            for each in ("list personas", "completion bash")
        ),
    ],
)
def test_a_full_disk_behind_stdout_is_told_in_one_line(words: str, tmp_path: Path) -> None:
    """A list of hosts to drain that is empty only because nothing could be written is no answer."""
    assert run(words, ">/dev/full", tmp_path) == (2, "", FULL)


@pytest.mark.slow
@pytest.mark.parametrize("words", ["list personas", "--version"])
@pytest.mark.parametrize("where", [">&-", "<&- >&- 2>&-", "2>&-", "2>/dev/full"])
def test_streams_that_nobody_wants_change_no_exit_code(
    words: str, where: str, tmp_path: Path
) -> None:
    assert run(words, where, tmp_path)[::2] == (0, "")


@pytest.mark.slow
@pytest.mark.parametrize("where", ["2>&-", "2>/dev/full"])
def test_an_error_that_cannot_be_told_keeps_its_exit_code(where: str, tmp_path: Path) -> None:
    assert run(LINT, where, tmp_path)[::2] == (2, "")
    assert run("run --no-such-option", where, tmp_path)[::2] == (2, "")


@pytest.mark.slow
def test_a_run_whose_stdout_takes_nothing_leaves_its_reports(tmp_path: Path) -> None:
    words = f"demo --hosts 2 {' '.join(ONE)} --fault pfc-off@gpu-02 --format hosts -q"
    assert run(words, ">/dev/full", tmp_path) == (2, "", FULL)
    assert (tmp_path / "reports" / "latest" / "report.html").exists()
    for form in ("text", "json", "hosts"):
        for where, code, said in ((">/dev/full", 2, FULL), (">&-", 1, ""), ("| head -c 1", 0, "")):
            done, _, err = run(f"report last --format {form}", where, tmp_path)
            assert (done, err) == (code, said)


@pytest.mark.slow
@pytest.mark.parametrize("more", [[], ["-q"]])
def test_a_terminal_that_hangs_up_ends_the_run_in_order(more: list[str], tmp_path: Path) -> None:
    """The window is closed: SIGHUP, and every write to it fails from then on."""
    child, terminal = pty.fork()
    if child == 0:
        os.chdir(tmp_path)
        os.environ.update(HOME=str(tmp_path), COMMCHECK_DEBUG="1", TERM="xterm")
        words = [str(COMMCHECK), "demo", "--hosts", "8", "-f", "1", *ONE, *more]
        os.execv(words[0], words)
    latest = tmp_path / "reports" / "latest"
    ends = time.monotonic() + 40
    while '"event":"host"' not in _text(latest / "events.ndjson"):
        assert time.monotonic() < ends
        time.sleep(0.02)
    os.close(terminal)
    _, status = os.waitpid(child, 0)
    assert os.waitstatus_to_exitcode(status) in (128 + signal.SIGTERM, -signal.SIGHUP)
    assert "interrupted" in _text(latest / "results.json")
    assert (latest / "report.html").exists()


def _text(path: Path) -> str:
    return path.read_text() if path.exists() else ""


def test_a_stream_of_ascii_gets_what_is_most_like() -> None:
    assert (
        within("a … b \N{EN DASH} c ≥ \N{CJK UNIFIED IDEOGRAPH-4E2D}", "ascii")
        == "a ... b - c >= ?"
    )
    assert within("a … b", "utf-8") == "a … b"


@pytest.mark.parametrize(
    ("told", "longest"),
    [("60", 60), ("30", 52), ("500", 80), ("", 80), ("wide", 80), ("-1", 80), ("9" * 5000, 80)],
)
def test_help_fits_the_columns_that_are_told(told: str, longest: int, tmp_path: Path) -> None:
    _, page, _ = run("run --help", "", tmp_path, COLUMNS=told)
    assert 0.7 * longest < max(map(len, page.splitlines())) <= longest
