"""Trace analysis beside HolisticTraceAnalysis: the same file, the same overlap, time and memory.

Run as ``python -m benchmarks.trace [MEGABYTES] [--steps N] [--huge GIGABYTES] [--alone]``; 200 MB
without an argument. The trace is generated at run time, 266 steps of 400 kernels; HTA's time grows
with events times steps, so that ``--steps`` changes the ratio. HTA is installed by pip into
``commcheck-benchmark-hta`` in the temporary folder, once. ``--huge`` reads a trace of so many
gigabytes for its memory alone, without HTA. The smallest CPU time of three runs stands.
"""

from __future__ import annotations

import argparse
import gzip
import json
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

from benchmarks.measure import Cost, measure
from commcheck.trace.job import job_facts
from tests.trace import make_trace

HERE = Path(__file__).parents[1]
STEPS = 266
STEP_EVENT_BYTES = 1900
"""Text that the generator writes for one kernel with its host operators, launch and arrows."""

HTA = """
import json, sys
from hta.trace_analysis import TraceAnalysis
analysis = TraceAnalysis(
    trace_files={0: sys.argv[1]}, trace_dir=sys.argv[2], include_last_profiler_step=True
)
overlap = analysis.get_comm_comp_overlap(visualize=False)
print("OVERLAP", float(overlap["comp_comm_overlap_pctg"].iloc[0]) / 100)
"""


def generate(folder: Path, megabytes: float, steps: int) -> Path:
    """A trace of one rank of about this size."""
    layers = 24
    kernels = max(1, int(megabytes * 1e6 / steps / STEP_EVENT_BYTES / 2 / layers))
    options = make_trace.variant(
        name="big", ranks=1, world=8, steps=steps, layers=layers, kernels=kernels
    )
    (path,), _ = make_trace.make(str(folder), options)
    return Path(path)


def install() -> Path:
    """A Python with HTA; made at the first call and kept in the temporary folder."""
    venv = Path(tempfile.gettempdir()) / "commcheck-benchmark-hta"
    python = venv / "bin" / "python"
    if not (venv / "installed").exists():
        shutil.rmtree(venv, ignore_errors=True)
        subprocess.run([sys.executable, "-m", "venv", str(venv)], check=True)
        pip = [str(python), "-m", "pip", "install", "--quiet", "HolisticTraceAnalysis==0.5.0"]
        subprocess.run(pip, check=True, stderr=subprocess.DEVNULL)
        (venv / "installed").touch()
    return python


def overlap_of(cost: Cost) -> float | None:
    """The overlap that a measured program printed."""
    lines = [line for line in cost.output.splitlines() if line.startswith("OVERLAP ")]
    return float(lines[-1].split()[1]) if lines and not cost.code else None


def row(name: str, size: float, cost: Cost) -> str:
    """One line of the table. MB/s is of the text, per second of CPU: one core's."""
    overlap = overlap_of(cost)
    if overlap is None:
        return f"{name:24} failed: {cost.output[-400:]}"
    return (
        f"{name:24} {size / 1e6 / cost.wall_s:8.1f} MB/s wall {size / 1e6 / cost.cpu_s:8.1f} MB/s "
        f"a core {cost.wall_s:8.2f} s {cost.cpu_s:8.2f} CPU s {cost.rss_mb:8.0f} MB  "
        f"overlap {100 * overlap:.2f} %"
    )


def ours(path: Path) -> Cost:
    """The whole analysis of one file in one process, started as a user starts it."""
    return measure([sys.executable, "-m", "benchmarks.trace", "--read", str(path)], cwd=HERE)


def read(path: Path) -> int:
    """In the measured process."""
    job, _ = job_facts([path], workers=1)
    (rank,) = job.ranks
    print(json.dumps({"steps": len(rank.steps), "median_ms": rank.median_ns / 1e6}))
    print(f"OVERLAP {rank.overlap}")
    return 0


def main() -> int:
    """The table, on standard output."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("megabytes", nargs="?", type=float, default=200)
    parser.add_argument("--steps", type=int, default=STEPS)
    parser.add_argument("--huge", type=float, default=0, metavar="GIGABYTES")
    parser.add_argument("--alone", action="store_true", help="without HTA")
    parser.add_argument("--read", type=Path, help=argparse.SUPPRESS)
    given = parser.parse_args()
    if given.read:
        return read(given.read)
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        path = generate(folder, given.megabytes, given.steps)
        size = path.stat().st_size
        packed = path.with_name("packed.json.gz")
        with path.open("rb") as text, gzip.open(packed, "wb", compresslevel=6) as file:
            shutil.copyfileobj(text, file, 1 << 20)
        smaller = packed.stat().st_size
        print(f"{size / 1e6:,.0f} MB in {given.steps} steps, {smaller / 1e6:,.1f} MB packed")
        cost = min((ours(path) for _ in range(3)), key=_cpu)
        print(row("commcheck, plain", size, cost))
        print(row("commcheck, gz", size, min((ours(packed) for _ in range(3)), key=_cpu)))
        if not given.alone:
            hta = [str(install()), "-c", HTA, path.name, str(folder)]
            peer = measure(hta, cwd=HERE)
            print(row("HolisticTraceAnalysis", size, peer))
            wall, cpu = peer.wall_s / cost.wall_s, peer.cpu_s / cost.cpu_s
            memory = peer.rss_mb / cost.rss_mb
            print(f"HTA: {wall:.0f} x the time, {cpu:.0f} x the CPU, {memory:.0f} x the memory")
    if given.huge:
        with tempfile.TemporaryDirectory() as name:
            path = generate(Path(name), given.huge * 1000, int(given.huge * 1330))
            print(row(f"commcheck, {given.huge:g} GB", path.stat().st_size, ours(path)))
    return 0


def _cpu(cost: Cost) -> float:
    return cost.cpu_s


if __name__ == "__main__":
    sys.exit(main())
