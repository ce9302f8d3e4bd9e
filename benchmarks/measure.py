"""What a command costs: wall time, CPU time and memory of it and of all that it starts.

Run as ``python -m benchmarks.measure COMMAND...``: the measuring process adopts what the command
leaves behind (Ansible's SSH masters), ends it when the command has ended, and counts it as well.
Servers must be started by somebody else, so that their time is not counted.
"""

from __future__ import annotations

import contextlib
import ctypes
import json
import os
import resource
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path

PR_SET_CHILD_SUBREAPER = 36
"""linux/prctl.h"""

_LOOK_S = 0.25


@dataclass(frozen=True, slots=True)
class Cost:
    """``cpu_s`` is user and system time of all processes; ``rss_mb`` their anonymous memory.

    Memory is the peak of the sum, in 10^6 bytes, looked at every 0.25 s.
    """

    wall_s: float
    cpu_s: float
    rss_mb: float
    processes: int
    code: int
    output: str


def measure(argv: Sequence[str], *, environ: Mapping[str, str] | None = None, cwd: Path) -> Cost:
    """Run a command and wait for it. Its output is kept, so that a result can be proven."""
    wrapped = [sys.executable, "-m", "benchmarks.measure", *argv]
    root = Path(__file__).parents[1]
    paths = f"{root}{os.pathsep}{root / 'src'}"  # this checkout's, wherever it was installed from
    environ = {**os.environ, **(environ or {}), "PYTHONPATH": paths}
    environ.pop("PYTHONDONTWRITEBYTECODE", None)  # all start as they do for a user: compiled
    done = subprocess.run(wrapped, check=True, capture_output=True, text=True, env=environ, cwd=cwd)
    return Cost(**json.loads(done.stdout))


def cpu_s_of(pid: int) -> float:
    """The user and system time that a process has used so far."""
    fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


def _measure_here(argv: Sequence[str]) -> Cost:
    libc = ctypes.CDLL(None)
    if libc.prctl(PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0):
        raise OSError("this Linux cannot adopt orphans")
    began = time.monotonic()
    child = subprocess.Popen(
        argv, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.STDOUT
    )
    peak = _Peak()
    peak.start()
    output, _ = child.communicate()
    wall_s = time.monotonic() - began
    peak.over.set()
    peak.join()
    for pid in _below(os.getpid()):
        with contextlib.suppress(ProcessLookupError):
            os.kill(pid, signal.SIGKILL)
    with contextlib.suppress(ChildProcessError):
        while True:
            os.wait()
    used = resource.getrusage(resource.RUSAGE_CHILDREN)
    return Cost(
        wall_s=wall_s,
        cpu_s=used.ru_utime + used.ru_stime,
        rss_mb=peak.bytes / 1e6,
        processes=peak.processes,
        code=child.returncode,
        output=output.decode("utf-8", "replace")[-20_000:],
    )


class _Peak(threading.Thread):
    """Watches the memory of what this process started."""

    def __init__(self) -> None:
        super().__init__(daemon=True)
        self.over = threading.Event()
        self.bytes = 0
        self.processes = 0

    def run(self) -> None:
        while not self.over.wait(_LOOK_S):
            pids = list(_below(os.getpid()))
            self.processes = max(self.processes, len(pids))
            self.bytes = max(self.bytes, sum(_anonymous_bytes(pid) for pid in pids))


def _below(pid: int) -> Iterator[int]:
    """Every process under ``pid``, by one look at all of them."""
    children: dict[int, list[int]] = {}
    for entry in Path("/proc").glob("[0-9]*/stat"):
        with contextlib.suppress(OSError, ValueError, IndexError):
            parent = int(entry.read_text().rpartition(")")[2].split()[1])
            children.setdefault(parent, []).append(int(entry.parent.name))
    waiting = [pid]
    while waiting:
        found = children.get(waiting.pop(), [])
        yield from found
        waiting += found


def _anonymous_bytes(pid: int) -> int:
    """Its anonymous memory; of what it shares with others after a fork, its share."""
    with contextlib.suppress(OSError):
        for line in Path(f"/proc/{pid}/smaps_rollup").read_text().splitlines():
            if line.startswith("Pss_Anon:"):
                return int(line.split()[1]) * 1024
    return 0


if __name__ == "__main__":
    json.dump(asdict(_measure_here(sys.argv[1:])), sys.stdout)
