"""Every file argument of every command, given something that is no file, or more than a file.

The arguments are found by walking the commands: a text is a file's name unless it is listed here
as something else, so no new option escapes.
"""

from __future__ import annotations

import os
import signal
import socket
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import NoReturn

import click
import pytest

from commcheck.cli import main
from tests.chaos.test_run_folders import call

__all__ = ["call"]

Call = Callable[..., tuple[int, str, str]]

WORDS = {
    *("algorithm", "allow", "argv", "collective", "device", "drain_command", "executor"),
    *("faults", "kernels", "name", "names", "notify", "only", "personas", "runbook_url"),
    *("selector", "shard", "skip", "tool", "url", "user"),
}
"""Texts that name no file."""

NEEDED = {
    "run": ("-i", "HOST"),
    "demo": ("--hosts", "1", "--dry-run"),
    "step": ("--wait", "1", "--", "true"),
    "explain": ("physical.nic-mtu",),
    "read": ("mlnx_qos",),
    "schema": ("playbook",),
    "completion": ("bash",),
    "analyze metrics": ("--url", "http://127.0.0.1:9"),
}
"""What a command wants, beside the argument that is looked at."""

NOT_READ = {"demo: baseline", "demo: out", "demo: junit"}
"""A dry run does not touch them. They are the options of ``run``."""


def commands(group: click.Group, before: str = "") -> Iterator[tuple[str, click.Command]]:
    for name, each in group.commands.items():
        if isinstance(each, click.Group):
            yield from commands(each, f"{before}{name} ")
        else:
            yield f"{before}{name}", each


def names_a_file(param: click.Parameter) -> bool:
    return isinstance(param.type, click.Path) or (
        isinstance(param.type, click.types.StringParamType) and param.name not in WORDS
    )


SLOTS = {
    f"{name}: {param.name}": (name, each, param)
    for name, each in commands(main)
    for param in each.params
    if names_a_file(param)
}


def words_of(slot: str, given: str, fine: Path) -> list[str]:
    """A command line with ``given`` in the slot, and a ``fine`` file wherever one is wanted."""
    name, command, looked_at = SLOTS[slot]
    words: list[str] = []
    needed = [str(fine) if word == "HOST" else word for word in NEEDED.get(name, ())]
    for param in command.params:
        if param is looked_at:
            value = f"@{given}" if param.name == "limit" else given
            words += [value] if isinstance(param, click.Argument) else [param.opts[-1], value]
            if param.name == "inventory":
                needed = ["--dry-run"] if name == "run" else []
            if param.name == "limit" and name != "demo":
                words += ["-i", str(fine)]
        elif isinstance(param, click.Argument) and param.required and names_a_file(param):
            needed = [*needed, str(fine)]
    if name == "list":
        words.append("hosts")
    return [*name.split(), *words, *needed]


class TookTooLong(BaseException):
    """Not caught by what is looked at."""


@contextmanager
def at_most(seconds: float) -> Iterator[None]:
    def ring(*_: object) -> NoReturn:
        raise TookTooLong

    former = signal.signal(signal.SIGALRM, ring)
    signal.setitimer(signal.ITIMER_REAL, seconds)
    try:
        yield
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)
        signal.signal(signal.SIGALRM, former)


def peak_mib() -> int:
    """The most memory held since ``forget_peak``."""
    status = Path("/proc/self/status").read_text()
    return int(status.partition("VmHWM:")[2].split()[0]) >> 10


def forget_peak() -> None:
    Path("/proc/self/clear_refs").write_text("5")


@pytest.fixture
def fine(tmp_path: Path) -> Path:
    """A file for the other arguments: an inventory, of a host that refuses."""
    file = tmp_path / "fine.yaml"
    file.write_text("all: {hosts: {a: {ansible_host: 127.0.0.1, ansible_port: 9}}}\n")
    return file


def no_files(folder: Path) -> Iterator[Path]:
    """What a name may stand for that is no file, or a folder of such."""
    pipes, loops = folder / "pipes", folder / "loops"
    for each in (pipes / "frames", pipes / "physical", loops / "frames"):
        each.mkdir(parents=True)
    for name in ("events.ndjson", "inventory.json", "results.json", "a.yaml", "physical/a.py"):
        os.mkfifo(pipes / name)
        (loops / name).parent.mkdir(exist_ok=True)
        (loops / name).symlink_to(name)
    (loops / "again").symlink_to(loops)
    (loops / "itself").symlink_to("itself")
    with socket.socket(socket.AF_UNIX) as bound:
        bound.bind(str(folder / "socket"))
    yield from (pipes / "a.yaml", folder / "socket", Path("/dev/zero"))
    yield from (pipes, loops, loops / "itself", folder / "not-there")


@pytest.mark.slow
@pytest.mark.parametrize("slot", SLOTS)
def test_what_is_no_file_is_refused_by_name(
    slot: str, tmp_path: Path, fine: Path, call: Call
) -> None:
    for given in no_files(tmp_path / "given"):
        forget_peak()
        before = peak_mib()
        with at_most(20):
            code, out, err = call(*words_of(slot, str(given), fine))
        assert peak_mib() - before < 100, given
        assert len(err) < 20_000, given
        if given.name in ("a.yaml", "socket", "zero", "itself") and slot not in NOT_READ:
            assert code == 2, (given, err)
            told = err or out  # lint tells on stdout
            assert len(told.splitlines()) in (1, 4), (given, told)  # four: with the usage
