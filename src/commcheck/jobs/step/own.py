"""A few profiled steps of the user's own training: its start is wrapped, its files are not."""

from __future__ import annotations

import contextlib
import os
import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from importlib.resources import files
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Final

from commcheck.analysis import Analysis
from commcheck.errors import CommcheckError, UsageError
from commcheck.trace.offline import analyse_traces
from commcheck.trace.rungs import Known

_LOOK_S: Final = 0.2
_OTHERS_S: Final = 60.0
"""Ranks meet in every step: the last trace is written this much after the first at most."""
_LEAVE_S: Final = 10.0


@dataclass(frozen=True, slots=True)
class Wanted:
    """What to profile: ``skip`` optimizer steps pass first. ``go_on``: the command is not ended
    once the traces are there. ``limit_s``: how long they are waited for."""

    steps: int
    skip: int
    limit_s: float
    go_on: bool


def analyse_own(
    argv: Sequence[str],
    wanted: Wanted,
    known: Known,
    keep: Path | None,
    note: Callable[[str], None],
) -> Analysis:
    """Start a command, profile it, and analyse its traces, which ``keep`` gets a copy of.

    ``note`` is told when the command is ended, which it may say much about. Raises ``UsageError``
    where it cannot be started, ``CommcheckError`` where it leaves no trace.
    """
    if keep is not None and keep.exists() and (not keep.is_dir() or any(keep.iterdir())):
        raise UsageError(f"{keep}: error: is there and is no empty folder [step]")
    with TemporaryDirectory(prefix="commcheck-step-") as name:
        folder = Path(name)
        traces = _profile(argv, wanted, folder, note)
        if keep is not None:
            keep.mkdir(parents=True, exist_ok=True)
            for path in traces:
                shutil.copy(path, keep)
        return analyse_traces(traces, known=known)


def _profile(
    argv: Sequence[str], wanted: Wanted, folder: Path, note: Callable[[str], None]
) -> list[Path]:
    hook = folder / "hook"
    hook.mkdir()
    text = files("commcheck.jobs.step").joinpath("wrapper.py").read_bytes()
    (hook / "sitecustomize.py").write_bytes(text)
    behind = os.environ.get("PYTHONPATH", "")
    env = {
        **os.environ,
        "PYTHONPATH": f"{hook}{os.pathsep}{behind}" if behind else str(hook),
        "COMMCHECK_STEP_FOLDER": str(folder),
        "COMMCHECK_STEP_SKIP": str(wanted.skip),
        "COMMCHECK_STEP_STEPS": str(wanted.steps),
    }
    try:
        # Its output goes to stderr: stdout is for what commcheck says.
        child = subprocess.Popen(  # noqa: S603 - the user's own command
            list(argv), stdout=sys.stderr, env=env, start_new_session=True
        )
    except OSError as error:
        raise UsageError(f"error: {argv[0]}: {error.strerror or error} [step]") from None
    try:
        _wait(child, wanted.limit_s, folder)
        if wanted.go_on:
            child.wait()
        elif child.poll() is None:
            note("commcheck: no more is waited for, the command is ended; --go-on lets it run")
    finally:
        _end(child, f"COMMCHECK_STEP_FOLDER={folder}".encode())
    traces = sorted(folder.glob("rank*[0-9].json.gz"))
    if not traces:
        raise CommcheckError(_why_none(argv, child.returncode, wanted, folder))
    return traces


def _wait(child: subprocess.Popen[bytes], limit_s: float, folder: Path) -> None:
    """Until the command ends, or every rank that began has left its trace."""
    end = time.monotonic() + limit_s
    while child.poll() is None and time.monotonic() < end:
        time.sleep(_LOOK_S)
        began = list(folder.glob("rank*.began"))
        over = list(folder.glob("rank*[0-9].json.gz")) + list(folder.glob("rank*.problem"))
        if not over:
            continue
        end = min(end, time.monotonic() + _OTHERS_S) if len(over) == 1 else end
        ranks = [int(text) for each in began if (text := each.read_text().strip()).isdigit()]
        if len(over) >= max([len(began), *ranks]):
            return


def _end(child: subprocess.Popen[bytes], variable: bytes) -> None:
    """End the command and all that it started, gently at first."""
    with contextlib.suppress(OSError):
        os.killpg(child.pid, signal.SIGTERM)
    end = time.monotonic() + _LEAVE_S
    while (left := _with(variable)) and time.monotonic() < end:
        child.poll()  # or it would stay as a zombie
        time.sleep(_LOOK_S / 4)
    for pid in left:
        with contextlib.suppress(OSError):
            os.kill(pid, signal.SIGKILL)
    child.kill()
    child.wait()


def _with(variable: bytes) -> list[int]:
    """Processes that have the variable: torchrun gives every rank a session of its own."""
    found = []
    for path in Path("/proc").glob("[0-9]*/environ"):
        with contextlib.suppress(OSError):
            if variable in path.read_bytes().split(b"\0"):
                found.append(int(path.parent.name))
    return found


def _why_none(argv: Sequence[str], rc: int | None, wanted: Wanted, folder: Path) -> str:
    said = [each.read_text().strip() for each in sorted(folder.glob("*.problem"))]
    if said:
        return f"{argv[0]} left no trace: {said[0]}"
    if any(folder.glob("rank*.began")):
        what = f"it ended before {wanted.steps} steps were profiled"
    else:
        what = (
            f"no process of it made {wanted.skip} steps of a torch optimizer; it must train with "
            "torch 2.0 or later, in a Python that is not started with -S, -E or -I"
        )
    return f"{argv[0]} left no trace (exit code {rc}): {what}"
