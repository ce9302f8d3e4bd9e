"""What nccl-tests, hccl_test and ib_write_bw would print for links of a given quality.

Two steps that are tested apart: a model of the link gives a run (``simulate``, deterministic), and
a run is printed byte for byte as the tool prints it (``print_*``), so that what a recording says,
printed again, is the recording.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from commcheck.jobs.perftest import Rate
from commcheck.jobs.reading import (
    MIB,
    Half,
    Rank,
    Row,
    State,
    Sweep,
    factor,
)
from commcheck.lazy import dataclass

IN_PIECES: Final = ("all_gather", "reduce_scatter", "alltoall", "gather", "scatter")
_REDUCING: Final = ("all_reduce", "reduce_scatter", "reduce")
_LOSS_FROM: Final = 16 * MIB


@dataclass(frozen=True, slots=True, kw_only=True)
class Link:
    """The slowest path of a run. ``beta_gbytes``: busbw for infinite sizes, GB/s.

    ``loss`` from 0 to 1: the share of bandwidth that retransmission takes from large messages,
    unsteadily, from 16 MiB on.
    """

    alpha_us: float
    beta_gbytes: float
    loss: float = 0.0


def simulate(
    collective: str,
    ranks: Sequence[Rank],
    sizes: Sequence[int],
    link: Link,
    *,
    version: str = "",
    wrong: int = 0,
) -> Sweep:
    """The run that a link gives; the same arguments give the same run.

    ``wrong``: elements with wrong values at the largest size. ``version`` "" prints the layout of
    2.13 to 2.17.2, else that of 2.17.4 and newer.
    """
    nranks = len(ranks)
    times = factor(collective, nranks)
    rows = []
    for size in sizes:
        count = size // 4 // (nranks if collective in IN_PIECES else 1)
        bad = wrong if size == max(sizes) else 0
        halves = [_half(size, link, times, placement, bad) for placement in (0, 1)]
        if collective in ("alltoall", "sendrecv"):
            halves[1] = Half(halves[1].time_us, halves[1].algbw, halves[1].busbw)
        redop = "sum" if collective in _REDUCING else "none"
        root = 0 if collective in ("broadcast", "reduce", "gather", "scatter") else -1
        rows.append(Row(size, count, "float", redop, root, halves[0], halves[1]))
    cells = [half.busbw for row in rows for half in row.halves]
    return Sweep(
        tool="nccl-tests",
        state=State.COMPLETE,
        version=version,
        collective=collective,
        nranks=nranks,
        ranks=tuple(ranks),
        rows=tuple(rows),
        validation=True,
        out_of_bounds=2 if wrong else 0,
        avg_busbw=sum(cells) / len(cells),
        iterations=20,
        warmup=5,
    )


def _half(size: int, link: Link, times: float, placement: int, wrong: int) -> Half:
    beta = link.beta_gbytes / (times or 1.0)
    if link.loss and size > _LOSS_FROM:
        doublings = (size // _LOSS_FROM).bit_length() - 1
        # Unsteady: placements and neighbouring sizes differ, by the same steps every time.
        unsteady = 1 - 0.25 * ((doublings * 7 + placement * 5) % 4) / 4
        beta *= max((1 - link.loss) ** min(doublings, 4), 0.02) * unsteady
    time = link.alpha_us + size / beta / 1e3 + 0.003 * placement * size / beta / 1e3
    algbw = size / time / 1e3
    return Half(time, algbw, algbw * times, float(wrong))


# --- nccl-tests ---------------------------------------------------------------------------------


def print_nccl_tests(run: Sweep, *, library: str = "") -> str:
    """A run in the layout of its version; ``library`` is NCCL's line between ranks and header."""
    newer = bool(run.version)
    rows, comment = run.rows, []
    if newer:
        comment.append(f"# nccl-tests version {run.version}")
        comment.append(f"# Collective test starting: {run.collective}_perf")
    comment.append(
        f"# nThread 1 nGpus 1 minBytes {rows[0].size} maxBytes {rows[-1].size} step: 2(factor) "
        f"warmup iters: {run.warmup} iters: {run.iterations} agg iters: 1 "
        f"validation: {int(bool(run.validation))} graph: 0"
    )
    comment += ["#", "# Using devices"]
    comment += [
        f"#  Rank {rank.rank:2d} Group {rank.group:2d} Pid {rank.pid or 0:6d} on {rank.host:>10} "
        f"device {rank.device:2d} [{rank.pci}] {rank.name}"
        for rank in run.ranks
    ]
    comment += [library] if library else []
    lines = [*comment, "#", *_header(newer), *(_row(row, newer) for row in rows)]
    verdict = "FAILED" if run.out_of_bounds else "OK"
    lines += [
        f"# Out of bounds values : {run.out_of_bounds} {verdict}",
        f"# Avg bus bandwidth    : {run.avg_busbw:g} ",
        "#",
    ]
    if newer:
        lines += [f"# Collective test concluded: {run.collective}_perf"]
    return "\n".join([*lines, "", ""])


def _header(newer: bool) -> tuple[str, str, str]:
    wide = " " if newer else ""
    left = f"#{'':60}"
    names = f"   time   algbw   busbw {wide}#wrong"
    units = f"   (us)  (GB/s)  (GB/s)       {wide}"
    return (
        f"{left}  out-of-place{'':23}in-place          ",
        f"#{'size':>11}{'count':>14}{'type':>10}{'redop':>8}{'root':>8}  {names}  {names}",
        f"#{'(B)':>11}{'(elements)':>14}{'':26}  {units}  {units}{wide}",
    )


def _row(row: Row, newer: bool) -> str:
    left = f"{row.size:>12}  {row.count:>12}  {row.dtype:>8}  {row.redop:>6}  {row.root:>6}"
    width = 6 if newer else 5
    return left + "".join(
        f"  {_time(half.time_us, newer)}  {half.algbw:>6.2f}  {half.busbw:>6.2f}"
        f"  {'N/A' if half.wrong is None else f'{half.wrong:g}':>{width}}"
        for half in row.halves
    )


def _time(time_us: float, newer: bool) -> str:
    """As many decimals as seven characters hold; before 2.17.3 by fixed steps."""
    if newer:
        fits = (text for d in (2, 1, 0) if len(text := f"{time_us:.{d}f}") <= 7)
        return f"{next(fits, f'{time_us:.0e}'):>7}"
    decimals = 0 if time_us >= 9999.95 else 1 if time_us >= 99.995 else 2
    return f"{time_us:7.{decimals}f}"


# --- hccl_test and perftest ---------------------------------------------------------------------


def print_hccl_test(run: Sweep) -> str:
    """A run as hccl_test prints it: sizes, times and algorithm bandwidth only."""
    lines = [
        f"the minbytes is {run.rows[0].size}, maxbytes is {run.rows[-1].size}, "
        f"iters is {run.iterations}, warmup_iters is {run.warmup}",
        "data_size(Bytes): | aveg_time(us): | alg_bandwidth(GB/s): | check_result:",
    ]
    for row in run.rows:
        half = row.halves[0]
        check = "NULL" if half.wrong is None else "failed" if half.wrong else "success"
        algbw = row.size / round(half.time_us, 2) / 1e3
        lines.append(f"{row.size:<17} | {half.time_us:<14.2f} | {algbw:<20.5f} | {check}")
    return "\n".join([*lines, ""])


_RULE: Final = "-" * 87


def print_write_bw(rates: Sequence[Rate], *, device: str, mtu: int, link_type: str) -> str:
    """``ib_write_bw --report_gbits`` between two NICs, from the client."""
    settings = (
        f" Dual-port       : OFF\t\tDevice         : {device}",
        " Number of qps   : 1\t\tTransport type : IB",
        " Connection type : RC\t\tUsing SRQ      : OFF",
        " PCIe relax order: ON\t\tLock-free      : OFF",
        " ibv_wr* API     : ON\t\tUsing Enhanced Reorder      : OFF",
        " TX depth        : 128",
        " CQ Moderation   : 1",
        " CQE Poll Batch  : Dynamic",
        f" Mtu             : {mtu}[B]",
        f" Link type       : {link_type}",
        " GID index       : 3",
        " Max inline data : 0[B]",
        " rdma_cm QPs\t : OFF",
        " Data ex. method : Ethernet",
    )
    addresses = (
        " local address: LID 0000 QPN 0x0123 PSN 0x2b1c3d RKey 0x1fff00 VAddr 0x007f1a2c000000",
        " GID: 00:00:00:00:00:00:00:00:00:00:255:255:10:20:03:11",
        " remote address: LID 0000 QPN 0x0124 PSN 0x4d5e6f RKey 0x1fff01 VAddr 0x007f9b3d000000",
        " GID: 00:00:00:00:00:00:00:00:00:00:255:255:10:20:03:12",
    )
    head = " #bytes     #iterations    BW peak[Gb/sec]    BW average[Gb/sec]   MsgRate[Mpps]"
    rows = (
        f" {rate.size:<7}    {rate.iterations:<10}       {rate.peak_gbits:<7.2f}            "
        f"{rate.average_gbits:<7.2f}\t\t     {rate.rate_mpps:<8.6f}"
        for rate in rates
    )
    title = f"{'':20}RDMA_Write BW Test"
    return "\n".join([_RULE, title, *settings, _RULE, *addresses, _RULE, head, *rows, _RULE, ""])


def rate_of(size: int, gbits: float, iterations: int = 5000) -> Rate:
    """A row of ``ib_write_bw`` at a bandwidth in Gb/s."""
    return Rate(size, iterations, gbits + 0.02, gbits, gbits / 8 / size * 1e3)
