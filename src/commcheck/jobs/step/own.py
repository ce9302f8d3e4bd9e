"""A few profiled steps of the user's own training: its start is wrapped, its files are not."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from collections.abc import Callable, Sequence
from importlib.resources import files
from pathlib import Path

from commcheck.analysis import Analysis
from commcheck.errors import CommcheckError, UsageError
from commcheck.jobs.step.on_host import (
    end_gently,
    hooked,
    private_folder,
    traces_in,
    wait_for_traces,
    why_none,
)
from commcheck.lazy import dataclass
from commcheck.stop import leaving_in_order
from commcheck.trace.offline import analyse_traces
from commcheck.trace.rungs import Known


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
    try:
        with private_folder() as folder, leaving_in_order():
            traces = _profile(argv, wanted, folder, note)
            if keep is not None:
                keep.mkdir(parents=True, exist_ok=True)
                for path in traces:
                    shutil.copy(path, keep)
            return analyse_traces(traces, known=known)
    except OSError as error:
        raise CommcheckError(f"a folder for the traces cannot be used: {error}") from error


def _profile(
    argv: Sequence[str], wanted: Wanted, folder: Path, note: Callable[[str], None]
) -> list[Path]:
    text = files("commcheck.jobs.step").joinpath("wrapper.py").read_text()
    env = {**os.environ, **hooked(folder, text, wanted.skip, wanted.steps)}
    try:
        # Its output goes to stderr: stdout is for what commcheck says.
        child = subprocess.Popen(  # noqa: S603 - the user's own command
            list(argv), stdout=sys.stderr, env=env, start_new_session=True
        )
    except OSError as error:
        raise UsageError(f"error: {argv[0]}: {error.strerror or error} [step]") from None
    try:
        wait_for_traces(child, wanted.limit_s, folder)
        if wanted.go_on:
            child.wait()
        elif child.poll() is None:
            note("commcheck: no more is waited for, the command is ended; --go-on lets it run")
    finally:
        end_gently(child, folder)
    traces = traces_in(folder)
    if not traces:
        options = {"skip": wanted.skip, "steps": wanted.steps}
        raise CommcheckError(why_none(argv[0], child.returncode, options, folder))
    return traces
