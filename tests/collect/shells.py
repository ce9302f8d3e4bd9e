"""The real runner under every shell that is installed here, over the pipes of a child."""

from __future__ import annotations

import shutil
import time
from collections.abc import Callable, Sequence
from pathlib import Path

import pytest

from commcheck.collect.base import Frame, Frames, Request
from commcheck.collect.local import LocalVisitor
from commcheck.collect.session import Session
from commcheck.command import Command
from commcheck.model import Host

SHELLS = ("dash", "bash", "busybox")
APPLETS = (
    "sh",
    "env",
    "head",
    "grep",
    "sleep",
    "timeout",
    "id",
    "uname",
    "cat",
    "printf",
    "setsid",
)


def use_shell(name: str, folder: Path, monkeypatch: pytest.MonkeyPatch) -> str:
    """Make ``sh`` on PATH that shell, with busybox's own tools where it is busybox; its path."""
    real = shutil.which(name)
    if real is None:
        pytest.skip(f"{name} is not installed")
    folder.mkdir()
    for tool in APPLETS if name == "busybox" else ("sh",):
        (folder / tool).symlink_to(real)
    monkeypatch.setenv("PATH", str(folder), prepend=":")
    return str(folder / "sh")


def command(*argv: str, timeout_s: float = 10.0, root: bool = False, cap: int = 1 << 20) -> Request:
    """A request with short words."""
    return Request(Command(argv, timeout_s=timeout_s, root=root, cap_bytes=cap))


def script(text: str, **limits: float) -> Request:
    """A request that runs shell text, as hostile tools would."""
    return Request(
        Command(
            ("sh", "-c", text),
            timeout_s=limits.get("timeout_s", 10.0),
            cap_bytes=int(limits.get("cap", 1 << 20)),
        )
    )


def visit(shell: str, requests: Sequence[Request], session: Session) -> list[Frame]:
    """All frames but that of the subjects."""
    frames = Frames()
    LocalVisitor(lambda _host: session, shell).visit(
        Host("here"), lambda _subjects: requests, frames
    )
    return frames[1:]


def carriers(mark: str) -> list[int]:
    """Processes whose environment holds the mark, as this user may see."""
    wanted = f"COMMCHECK_MARK={mark}:".encode()
    found = []
    for environ in Path("/proc").glob("[0-9]*/environ"):
        try:
            if wanted in environ.read_bytes().split(b"\0"):
                found.append(int(environ.parent.name))
        except OSError:
            continue
    return found


def wait_until(what: Callable[[], bool], limit_s: float) -> bool:
    """True once ``what`` is, False where it is not within ``limit_s``."""
    end = time.monotonic() + limit_s
    while time.monotonic() < end:
        if what():
            return True
        time.sleep(0.02)
    return what()
