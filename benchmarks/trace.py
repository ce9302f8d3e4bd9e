"""Trace analysis beside HolisticTraceAnalysis: the same file, the same overlap, time and memory.

The trace is generated at run time, 266 steps of some 400 kernels; HTA's time grows with events
times steps, so that the number of steps changes the ratio. HTA is installed by pip into
``commcheck-benchmark-hta`` in the temporary folder, once. The smallest CPU time of three runs
stands.
"""

from __future__ import annotations

import gzip
import re
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path

from benchmarks.measure import Cost, measure
from benchmarks.table import Row
from benchmarks.yardsticks import JSON_MB_S, Pace
from commcheck.trace.job import job_facts
from tests.trace import make_trace

HERE = Path(__file__).parents[1]
STEPS = 266
HTA_VERSION = "0.5.0"
STEP_EVENT_BYTES = 1900
"""Text that the generator writes for one kernel with its host operators, launch and arrows."""

JSON = "import json, sys; json.load(open(sys.argv[1], encoding='utf-8'))"

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
        wanted = f"HolisticTraceAnalysis=={HTA_VERSION}"
        pip = [str(python), "-m", "pip", "install", "--quiet", wanted]
        subprocess.run(pip, check=True, stderr=subprocess.DEVNULL)
        (venv / "installed").touch()
    return python


def traces(megabytes: float) -> Iterator[Row]:
    """A trace plain and packed, and HTA on the same file."""
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        path = generate(folder, megabytes, STEPS)
        size = path.stat().st_size
        packed = path.with_name("packed.json.gz")
        with path.open("rb") as text, gzip.open(packed, "wb", compresslevel=6) as file:
            shutil.copyfileobj(text, file, 1 << 20)
        what = f"a trace of {size / 1e6:,.0f} MB in {STEPS} steps"
        turns = [_turn(path, packed) for _ in range(3)]  # the yardstick between ours
        plain, gz, loaded = (
            min(costs, key=lambda cost: cost.cpu_s) for costs in zip(*turns, strict=True)
        )
        json_mb_s = size / 1e6 / loaded.cpu_s
        pace = Pace(JSON_MB_S / json_mb_s)
        yield _row(what, "commcheck", size, plain, pace, ">= 200 MB/s, HTA >= 50 x")
        yield _row(what, "commcheck, gz", size, gz, pace, ">= 150 MB/s")
        yield Row(what, "json.load", 0, loaded, pace.rate(json_mb_s, "MB/s"))
        hta = [str(install()), "-c", HTA, path.name, str(folder)]
        cost = measure(hta, cwd=HERE)
        yield _row(what, f"HolisticTraceAnalysis {HTA_VERSION}", size, cost, pace)


def huge(gigabytes: float) -> Iterator[Row]:
    """A trace that no memory holds, without HTA."""
    with tempfile.TemporaryDirectory() as name:
        path = generate(Path(name), gigabytes * 1000, int(gigabytes * STEPS * 5))
        size = path.stat().st_size
        what = f"a trace of {size / 1e9:,.1f} GB"
        yield _row(what, "commcheck", size, _ours(path), hold="< 200 MiB")


def _turn(path: Path, packed: Path) -> tuple[Cost, Cost, Cost]:
    return _ours(path), _ours(packed), measure([sys.executable, "-c", JSON, str(path)], cwd=HERE)


def _ours(path: Path) -> Cost:
    """The whole analysis of one file in one process, started as a user starts it."""
    return measure([sys.executable, "-m", "benchmarks.trace", str(path)], cwd=HERE)


def _row(
    what: str, who: str, size: int, cost: Cost, pace: Pace | None = None, hold: str = ""
) -> Row:
    """MB/s is of the text, per second of CPU: one core's."""
    overlap = re.search(r"^OVERLAP (\S+)$", cost.output, re.MULTILINE)
    if cost.code or overlap is None:
        raise SystemExit(f"{who} failed: {cost.output[-400:]}")
    here, unit = size / 1e6 / cost.cpu_s, "MB/s a core"
    rate = pace.rate(here, unit) if pace else f"{here:.0f} {unit}"
    return Row(what, who, 0, cost, f"{rate}, overlap {100 * float(overlap[1]):.2f} %", hold)


if __name__ == "__main__":  # the measured process
    job, _ = job_facts([Path(sys.argv[1])], workers=1)
    (rank,) = job.ranks
    print(f"OVERLAP {rank.overlap}")
