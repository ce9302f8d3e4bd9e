"""Inventories that a program prints: run it, within limits, and hand back what it said."""

from __future__ import annotations

import os
import shlex
import shutil
import signal
import subprocess
import sys
import tempfile
from collections.abc import Sequence
from pathlib import Path
from typing import Final

from commcheck.errors import InventoryError
from commcheck.inventory.declared import quoted
from commcheck.report.cleaning import SEEN_BY_ALL, holds_secret, mask

LIMIT_S: Final = 120.0
"""A cloud's API may be slow; a program that hangs must not hang the climb."""

MAX_BYTES: Final = 64 << 20


def by_ansible(sources: Sequence[str], cwd: Path) -> bytes:
    """What ``ansible-inventory --list`` says of these sources, as JSON.

    Raises ``InventoryError`` where it is not installed, fails, or takes too long.
    """
    beside = Path(sys.executable).with_name("ansible-inventory")
    found = shutil.which("ansible-inventory") or (str(beside) if beside.exists() else None)
    if found is None:
        raise InventoryError(
            f"{', '.join(sources)}: error: a program or a plugin, and ansible-inventory, which "
            "runs it, is not on PATH: install ansible-core, or run a program directly with "
            "-i 'exec:./program --list' [dynamic]"
        )
    words = [found, "--list"]
    for source in sources:
        words += ["-i", source]
    quiet = {"ANSIBLE_NOCOLOR": "1", "ANSIBLE_INVENTORY_UNPARSED_FAILED": "1"}
    return _run(words, ", ".join(sources), cwd, quiet)


def by_command(command: str, cwd: Path, name: str = "") -> bytes:
    """What a command prints; it is split into words and never seen by a shell.

    ``name``: what errors call it. Raises ``InventoryError`` where it cannot be run, fails, or takes
    too long.
    """
    try:
        words = shlex.split(command)
    except ValueError as error:
        raise InventoryError(f"exec:{command}: error: {str(error).lower()} [dynamic]") from error
    if not words:
        raise InventoryError("exec:: error: no command behind exec: [dynamic]")
    if holds_secret(command):
        raise InventoryError(f"exec:{mask(command)}: error: {SEEN_BY_ALL} [dynamic]")
    return _run(words, name or f"exec:{command}", cwd, {})


def _run(words: Sequence[str], name: str, cwd: Path, extra: dict[str, str]) -> bytes:
    # Into files: a program that floods one of two pipes cannot then block on the other.
    with tempfile.TemporaryFile() as stdout, tempfile.TemporaryFile() as stderr:
        try:
            child = subprocess.Popen(  # noqa: S603 - the operator names it, and no shell is used
                words,
                cwd=cwd,
                env={**os.environ, **extra},
                stdin=subprocess.DEVNULL,
                stdout=stdout,
                stderr=stderr,
                start_new_session=True,
            )
        except (OSError, ValueError) as error:
            reason = getattr(error, "strerror", None) or str(error)
            raise InventoryError(f"{name}: error: cannot be run: {reason} [dynamic]") from error
        try:
            code = child.wait(LIMIT_S)
        except subprocess.TimeoutExpired:
            raise InventoryError(
                f"{name}: error: no answer within {LIMIT_S:g} s [dynamic]"
            ) from None
        finally:
            if child.returncode is None:
                os.killpg(child.pid, signal.SIGKILL)
                child.wait()
        stdout.seek(0)
        stderr.seek(0)
        answer, complaint = stdout.read(MAX_BYTES + 1), stderr.read(1 << 20)
    if code != 0:
        raise InventoryError(f"{name}: error: exit code {code}: {_gist(complaint)} [dynamic]")
    if len(answer) > MAX_BYTES:
        raise InventoryError(f"{name}: error: its answer is larger than 64 MiB [dynamic]")
    return answer


def _gist(complaint: bytes) -> str:
    """The line of a complaint that says most.

    Ansible tries one plugin after the other: the first that failed was the right one.
    """
    lines = [line.strip() for line in complaint.decode(errors="replace").splitlines()]
    lines = [line for line in lines if line]
    tried = [line for line in lines if "Failed to parse" in line]
    errors = [line for line in lines if "error" in line.lower()]
    telling = tried[:1] or errors[-1:] or lines[-1:]
    return quoted(telling[0].removeprefix("[WARNING]: "), 300) if telling else "it says nothing"
