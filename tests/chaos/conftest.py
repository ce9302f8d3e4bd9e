"""Fleets that something happens to: hosts that run nothing, and real sshd hosts."""

from __future__ import annotations

import contextlib
import os
import subprocess
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from tests.cheap import CHECKS, Answer, CheapFleet, Script, script_of_two
from tests.sshd import Server

ASKED = [word for check in CHECKS for word in ("-t", check)]


@pytest.fixture(scope="session")
def script(tmp_path_factory: pytest.TempPathFactory) -> Script:
    """What a healthy host says to two checks."""
    return script_of_two(tmp_path_factory.mktemp("empty"))


@pytest.fixture(scope="session")
def cheap(script: Script) -> Iterator[CheapFleet]:
    """Twenty hosts that answer at once."""
    with CheapFleet(20, script) as fleet:
        yield fleet


@pytest.fixture(scope="session")
def slow_script(script: Script) -> Script:
    """The same host, which takes a moment for its first answer."""
    command, answer = next(iter(script.answers.items()))
    return script.with_answers({command: Answer(answer.stdout, answer.rc, seconds=0.4)})


def words_for(fleet: CheapFleet) -> list[object]:
    """A climb on a cheap fleet, by the two checks that it answers."""
    return ["run", *fleet.arguments, *ASKED, "-q", "--no-progress"]


def names(count: int) -> list[str]:
    """The hosts of a cheap fleet."""
    return [f"node-{number:04d}" for number in range(1, count + 1)]


def on_disk(server: Server, script: str, place: Path) -> str:
    """What a shell says in the mounts of a host; each has its own. ``$1``: the place."""
    words = ["nsenter", "-t", str(server.pid), "-m", "sh", "-c", script, "sh", str(place)]
    return subprocess.run(words, check=True, capture_output=True, text=True).stdout


def full_disk(server: Server, place: Path, left: int) -> None:
    """Let a folder of a host be a disk of 16 KiB of which so many bytes are left."""
    mount = "mount -t tmpfs -o size=16k none $1"
    on_disk(server, f"{mount}; head -c {(16 << 10) - left} /dev/zero > $1/filled", place)
    told = on_disk(
        server, f"head -c {left + 1} /dev/zero > $1/more || echo full; rm $1/more", place
    )
    assert told == "full\n"


@pytest.fixture
def small_disk(tmp_path: Path) -> Iterator[Callable[[int], Path]]:
    """Makes folders that hold so many KiB and no more."""
    if os.geteuid() != 0:
        pytest.skip("mounting a tmpfs needs root")
    with contextlib.ExitStack() as stack:

        def make(kib: int) -> Path:
            folder = tmp_path / f"disk-{kib}"
            folder.mkdir()
            mount = ["mount", "-t", "tmpfs", "-o", f"size={kib}k", "none", str(folder)]
            if subprocess.run(mount, check=False, capture_output=True).returncode:
                pytest.skip("a tmpfs may not be mounted here")
            stack.callback(subprocess.run, ["umount", "-l", str(folder)], check=True)
            return folder

        yield make
