"""Where the step's time goes, in a few lines."""

from __future__ import annotations

from statistics import median

from commcheck.trace.facts import JobFacts, RankFacts, most_exposed

_LINES_MOST = 3


def screen(job: JobFacts) -> tuple[str, ...]:
    """Lines for a terminal of 100 columns."""
    worst = most_exposed(job.ranks)
    return (
        _headline(job),
        *_times(worst, len(job.ranks) > 1),
        *_collectives(job, worst),
        *_hccl(worst),
    )


def _headline(job: JobFacts) -> str:
    steps = max(len(rank.steps) for rank in job.ranks)
    step_ns = median(rank.median_ns for rank in job.ranks)
    first = job.ranks[0]
    about = ", ".join(
        each
        for each in (
            first.framework,
            first.backend,
            f"NCCL {first.library}" if first.library else "",
        )
        if each
    )
    of = f" of {job.world}" if job.world and job.world != len(job.ranks) else ""
    ranks = "rank" if len(job.ranks) == 1 and not of else "ranks"
    return (
        f"{len(job.ranks)}{of} {ranks}, {steps} step{'s' * (steps != 1)}, median step "
        f"{step_ns / 1e6:.2f} ms" + (f" ({about})" if about else "")
    )


def _times(rank: RankFacts, is_one_of_many: bool) -> list[str]:
    whole = rank.median_ns

    def row(name: str, field: str, more: str = "") -> str:
        share = rank.share(field) or 0.0
        return f"  {name:16}{share * whole / 1e6:10.2f} ms {100 * share:5.1f} %{more}"

    blank = max(step.longest_blank_ns or 0 for step in rank.steps)
    overlap = "" if rank.overlap is None else f"   {100 * rank.overlap:.0f} % of it overlaps"
    longest = f"   longest {blank / 1e6:.2f} ms" if blank else ""
    whose = [f"  {rank.name}, the most exposed:"] if is_one_of_many else []
    rows = [
        *whose,
        row("computing", "compute_ns"),
        row("communication", "comm_ns", overlap),
        row("  exposed", "exposed_ns", longest),
        row("idle", "idle_ns"),
    ]
    if rank.share("input_ns"):
        rows.append(row("  input", "input_ns", "   the host waits for the next batch"))
    if rank.share("host_wait_ns"):
        rows.append(row("  host launches", "host_wait_ns", "   waited for, also under others"))
    if rank.share("bubble_ns"):
        rows.append(row("  pipeline", "bubble_ns", "   stages wait for each other"))
    if rank.share("untold_ns"):
        rows.append(row("  send, receive", "untold_ns", "   of groups without a description"))
    return rows


def _collectives(job: JobFacts, rank: RankFacts) -> list[str]:
    lines = []
    wires = {(wire.kind, wire.group, wire.group_size): wire for wire in job.wires}
    for move in rank.moved[:_LINES_MOST]:
        per_step = move.count / len(rank.steps)
        text = f"  {move.kind:16}{per_step:10.1f} a step"
        if move.sized:
            text += f", {move.size_bytes / move.sized / 1e6:.3g} MB each"
        wire = wires.get((move.kind, move.group, move.group_size))
        if wire is not None:
            waiting = ", waiting included" if wire.includes_waiting else ""
            text += f", {wire.busbw_gbytes:.1f} GB/s busbw{waiting}"
        if move.group_size:
            text += f", {move.group_size} ranks"
        lines.append(text)
    return lines


def _hccl(rank: RankFacts) -> list[str]:
    if rank.hccl is None or rank.hccl.waited is None:
        return []
    ways = "".join(f", {link.name} {link.gbytes:.1f} GB/s" for link in rank.hccl.links)
    return [f"  of HCCL's own time {rank.hccl.waited:.0%} waits for the peer{ways}"]
