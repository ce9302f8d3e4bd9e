"""The log audit beside ``grep -c``: lines a second, memory, and what a second process brings.

Run as ``python -m benchmarks.log_audit [LINES]``; five million lines of a 1,024-rank job without an
argument. The logs are made at run time in a temporary folder: a training log, a fifth of it NCCL's,
and a log of NCCL's lines alone. Each audit runs in a process of its own and proves itself: it must
find all ranks, all rings and nothing wrong.
"""

from __future__ import annotations

import shutil
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path

from benchmarks.measure import Cost, measure
from commcheck.model import Status
from commcheck.nccl.offline import analyse_logs

HOSTS = 128
EACH = 8
CHANNELS = 8
RANKS = HOSTS * EACH

_AUDIT = "audit"


def lines_of_job() -> Iterator[str]:
    """A healthy job: a world communicator, then splits of the same size, without end."""
    yield from _lines(0, "ncclCommInitRank", f"commId 0x{0xABC000:x}", start=True)
    split = 0
    while True:
        split += 1
        parent = "parent 0x7f0000000000 splitCount {} color 7 key 0"
        yield from _lines(split, "ncclCommSplit", parent.format(split), start=False)


def _lines(number: int, api: str, identity: str, *, start: bool) -> Iterator[str]:
    order = " ".join(f"{rank:3}" for rank in range(20))
    for rank in range(RANKS):
        host, dev = f"gpu-{rank // EACH:04}", rank % EACH
        head = f"{host}:{4100 + dev}:{4200 + dev} [{dev}] NCCL INFO "
        pointer = f"0x7f{number:06x}{0:04x}"
        who = f"{api} comm {pointer} rank {rank} nranks {RANKS} cudaDev {dev} nvmlDev {dev} "
        who += f"busId {dev + 1:x}8000 {identity}"
        if start:
            yield f"{head}NCCL_IB_TIMEOUT set by environment to 22."
            yield f"{head}Bootstrap : Using eth0:198.51.100.{rank // EACH}<0>"
            yield f"{head}cudaDriverVersion 12040"
            nics = " ".join(f"[{n}]mlx5_{n}:1/RoCE" for n in range(EACH))
            yield f"{head}NET/IB : Using {nics} [RO]; OOB eth0:198.51.100.{rank // EACH}<0>"
            yield f"{head}Using network IB"
        yield f"{head}{who} - Init START"
        yield (
            f"{head}comm {pointer} rank {rank} nRanks {RANKS} nNodes {HOSTS} localRanks {EACH} "
            f"localRank {dev} MNNVL 0"
        )
        if rank == 0:
            yield from (f"{head}Channel {c:02}/{CHANNELS:02} : {order}" for c in range(CHANNELS))
        yield f"{head}Trees [0] -1/-1/-1->{rank}->{rank - 1}"
        after, before = (rank + 1) % RANKS, (rank - 1) % RANKS
        for channel in range(CHANNELS):
            edge = f"{head}Channel {channel:02}/0 : "
            if after // EACH == rank // EACH:
                yield f"{edge}{rank}[{dev}] -> {after}[{after % EACH}] via P2P/CUMEM"
            else:
                yield f"{edge}{rank}[{dev}] -> {after}[0] [send] via NET/IB/{channel}/GDRDMA"
            if before // EACH != rank // EACH:
                yield f"{edge}{before}[7] -> {rank}[{dev}] [receive] via NET/IB/{channel}/GDRDMA"
        yield f"{head}Connected all rings"
        yield f"{head}{CHANNELS} coll channels, 8 p2p channels, 2 p2p channels per peer"
        yield f"{head}{who} - Init COMPLETE"


def write(path: Path, lines: int, others: int) -> int:
    """A log of so many lines or a few more, ``others`` of the program after each of NCCL's."""
    filler = [
        f"[2025-03-04 05:06:{n % 60:02},123] INFO trainer: step {n} loss 2.{n:04} lr 0.0003 "
        f"tokens/s {120000 + n} mem 71.2GB grad_norm 0.8\n"
        for n in range(1000)
    ]
    written = 0
    with path.open("w") as file:
        for line in lines_of_job():
            if written >= lines:
                break
            file.write(f"{line}\n")
            file.writelines(filler[(written + n) % 1000] for n in range(others))
            written += 1 + others
    return written


def audit(path: str, processes: int) -> int:
    """In the measured process: one audit that must find the job healthy, and whole."""
    analysis = analyse_logs([path], processes=processes)
    (finding,) = analysis.results[0].findings
    if finding.verdict.status is not Status.PASS or f"{RANKS} ranks" not in finding.verdict.reason:
        print(finding.verdict)
        return 1
    print(finding.verdict.reason)
    return 0


def row(name: str, lines: int, size: int, cost: Cost) -> str:
    """One line of the table."""
    if cost.code:
        return f"{name:28} failed: {cost.output[-300:]}"
    per_core = lines / max(0.01, cost.cpu_s) / 1e3
    return (
        f"{name:28} {lines / cost.wall_s / 1e3:8,.0f} k lines/s {size / cost.wall_s / 1e6:6,.0f} "
        f"MB/s {cost.wall_s:6.1f} s, {per_core:8,.0f} k lines per CPU second, {cost.rss_mb:,.0f} MB"
    )


def main(lines: int) -> int:
    """The table, on standard output."""
    here = Path(__file__).parents[1]
    with tempfile.TemporaryDirectory() as folder:
        for name, others in (("training log, a fifth NCCL", 4), ("NCCL lines alone", 0)):
            path = Path(folder) / "job.log"
            count = write(path, lines if others else lines // 5, others)
            size = path.stat().st_size
            print(f"{name}: {count:,} lines, {size / 1e6:,.0f} MB")
            for program in ("grep", "rg"):
                if shutil.which(program):
                    cost = measure([program, "-c", "Using network", str(path)], cwd=here)
                    print(row(f"  {program} -c (the floor)", count, size, cost))
            for processes in (1, 2):
                command = [sys.executable, "-m", "benchmarks.log_audit", _AUDIT, str(path)]
                cost = measure([*command, str(processes)], cwd=here)
                print(row(f"  commcheck, {processes} process(es)", count, size, cost))
    return 0


if __name__ == "__main__":
    words = sys.argv[1:]
    if words[:1] == [_AUDIT]:
        sys.exit(audit(words[1], int(words[2])))
    sys.exit(main(int(words[0]) if words else 5_000_000))
