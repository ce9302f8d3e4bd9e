"""Climbs that something happens to, and what must hold whatever happened."""

from __future__ import annotations

import json
import os
import shlex
import subprocess
import sys
import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from tests.sshd import marked

COMMCHECK = Path(sys.executable).parent / "commcheck"


@dataclass(frozen=True)
class Ended:
    """How a climb ended. ``code`` is negative where a signal ended it."""

    code: int
    out: str
    err: str
    base: Path
    seconds: float

    @property
    def run(self) -> Path:
        """The folder of the newest run."""
        return (self.base / "latest").resolve()

    @property
    def results(self) -> dict[str, Any]:
        loaded: dict[str, Any] = json.loads((self.run / "results.json").read_bytes())
        return loaded

    def verdicts(self) -> list[tuple[str, str, str, str]]:
        return [
            (each["host"], each["check"], each["subject"], each["status"])
            for each in self.results["verdicts"]
        ]


@dataclass
class Climb:
    """A climb that has begun. ``base``: where its runs go; its TMPDIR must be empty at its end."""

    process: subprocess.Popen[str]
    base: Path
    temporary: Path
    begun: float

    @property
    def events(self) -> str:
        path = self.base / "latest" / "events.ndjson"
        return path.read_text(errors="replace") if path.exists() else ""

    def ended(self, within_s: float = 60, *, codes: Iterable[int] = (0, 1, 2, 3)) -> Ended:
        """Wait for it. It ends in time and in order, without a word of Python's."""
        try:
            out, err = self.process.communicate(timeout=within_s)
        except subprocess.TimeoutExpired:
            self.process.kill()
            raise AssertionError(f"it did not end within {within_s:g} s") from None
        ended = Ended(self.process.returncode, out, err, self.base, time.monotonic() - self.begun)
        assert ended.code in tuple(codes), (ended.code, err)
        assert "Traceback" not in err, err
        assert "has a bug" not in err, err
        assert list(self.temporary.iterdir()) == []
        return ended


def begin(
    words: Sequence[object],
    base: Path,
    *,
    before: str = "",
    environment: Mapping[str, str] | None = None,
) -> Climb:
    """``commcheck WORDS -o base`` in a process group of its own; ``before``: sh, such as ulimit."""
    temporary = base.with_name(f"{base.name}-tmp")
    temporary.mkdir(parents=True, exist_ok=True)
    argv = [str(word) for word in (COMMCHECK, *words, "-o", base)]
    process = subprocess.Popen(
        ["sh", "-c", f"{before}\nexec {shlex.join(argv)}"],
        text=True,
        errors="replace",
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        start_new_session=True,
        cwd=temporary.parent,
        env={
            "PATH": os.environ["PATH"],
            "HOME": str(temporary.parent),
            "TMPDIR": str(temporary),
            "COMMCHECK_DEBUG": "1",
            **(environment or {}),
        },
    )
    return Climb(process, base, temporary, time.monotonic())


def climb(words: Sequence[object], base: Path, within_s: float = 60, **more: Any) -> Ended:
    """The same to its end."""
    return begin(words, base, **more).ended(within_s)


def report(base: Path, *words: object) -> Ended:
    """What ``commcheck report`` makes of the newest run."""
    return climb(["report", "last", *words], base)


def assert_nothing_lost(ended: Ended, hosts: Sequence[str], checks: int | None = None) -> None:
    """Every host has a verdict of every check, and what is no verdict has a name."""
    told = ended.results
    assert told["run"]["hosts"] == list(hosts)
    seen: dict[str, set[str]] = {host: set() for host in hosts}
    for each in told["verdicts"]:
        if each["host"] in seen:
            seen[each["host"]].add(each["check"])
        assert each["reason"].strip()
        assert "commcheck itself failed" not in each["reason"], each["reason"]
    assert all(seen.values()), [host for host in hosts if not seen[host]]
    if checks is not None:
        assert {len(each) for each in seen.values()} == {checks}
    assert "bug" not in told["run"]["not_reached"].values()


def assert_never_wrong(ended: Ended, healthy: Mapping[tuple[str, str, str], str]) -> None:
    """A fault on the way makes things unknown: nothing healthy fails, nothing passes unread."""
    for host, check, subject, status in ended.verdicts():
        assert status in ("error", "skip") or healthy.get((host, check, subject)) == status, (
            host, check, subject, status)  # fmt: skip


def assert_nothing_runs(run_id: str, within_s: float = 6) -> None:
    """No process that this run started on a host of this machine is left."""
    until(lambda: not marked(run_id), within_s)


def until(condition: Callable[[], object], seconds: float = 20) -> None:
    ends = time.monotonic() + seconds
    while not condition():
        assert time.monotonic() < ends, "it did not come to that"
        time.sleep(0.02)
