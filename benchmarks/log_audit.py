"""The log audit beside ``grep -c``: lines a second, memory, and what a second process brings.

The logs of a 1,024-rank job are made at run time in a temporary folder: a training log, a fifth of
it NCCL's, and a log of NCCL's lines alone. Each audit runs in a process of its own and proves
itself: it must find all ranks, all rings and nothing wrong.
"""

from __future__ import annotations

import shutil
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path

from benchmarks.measure import measure
from benchmarks.table import Row
from commcheck.model import Status
from commcheck.nccl.offline import analyse_logs

HOSTS = 128
EACH = 8
CHANNELS = 8
RANKS = HOSTS * EACH


def communicators() -> Iterator[Iterator[str]]:
    """A healthy job: a world communicator, then splits of the same size, without end."""
    yield _lines(0, "ncclCommInitRank", f"commId 0x{0xABC000:x}", start=True)
    split = 0
    while True:
        split += 1
        parent = "parent 0x7f0000000000 splitCount {} color 7 key 0"
        yield _lines(split, "ncclCommSplit", parent.format(split), start=False)


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
    """A log of so many lines or a few more, ``others`` of the program after each of NCCL's.

    It ends with a communicator: one whose init has no end would be told of.
    """
    filler = [
        f"[2025-03-04 05:06:{n % 60:02},123] INFO trainer: step {n} loss 2.{n:04} lr 0.0003 "
        f"tokens/s {120000 + n} mem 71.2GB grad_norm 0.8\n"
        for n in range(1000)
    ]
    written = 0
    with path.open("w") as file:
        for each in communicators():
            if written >= lines:
                break
            for line in each:
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


def audits(lines: int) -> Iterator[Row]:
    """Two logs: one process, two, and programs that only count lines: the floor."""
    with tempfile.TemporaryDirectory() as folder:
        for name, others, hold in (
            ("a training log, a fifth NCCL", 4, ">= 200 k lines/s a core"),
            ("a log of NCCL's lines alone", 0, ">= 100 k lines/s a core"),
        ):
            path = Path(folder) / "job.log"
            count = write(path, lines if others else lines // 5, others)
            what = f"{name}: {count:,} lines, {path.stat().st_size / 1e6:,.0f} MB"
            for processes in (1, 2):
                command = [sys.executable, "-m", "benchmarks.log_audit", str(path), str(processes)]
                who = f"commcheck, {processes} process{'es' * (processes > 1)}"
                yield _row(what, who, count, command, hold if processes == 1 else "")
            for program in ("grep", "rg"):
                if shutil.which(program):
                    command = [program, "-c", "Using network", str(path)]
                    yield _row(what, f"{program} -c", count, command)


def _row(what: str, who: str, lines: int, command: list[str], hold: str = "") -> Row:
    cost = measure(command, cwd=Path(__file__).parents[1])
    if cost.code:
        raise SystemExit(f"{who} failed: {cost.output[-400:]}")
    rate = f"{lines / cost.wall_s / 1e3:,.0f} k lines/s, {lines / cost.cpu_s / 1e3:,.0f} k a core"
    return Row(what, who, 0, cost, rate, hold)


if __name__ == "__main__":  # the measured process
    sys.exit(audit(sys.argv[1], int(sys.argv[2])))
