"""The facts of a job as plain JSON. The unit stands in each name; shares are of 1."""

from __future__ import annotations

from collections.abc import Mapping

from commcheck.trace.facts import Hccl, JobFacts, RankFacts, Skew


def facts_json(job: JobFacts) -> Mapping[str, object]:
    """Everything measured, as plain JSON; times in ms, shares of 1."""
    return {
        "world_size": job.world,
        "ranks": [_rank_json(rank) for rank in job.ranks],
        "skew": _skew_json(job.skew),
        "wire": [
            {
                "collective": wire.kind,
                "group": wire.group,
                "group_size": wire.group_size,
                "count": wire.count,
                "bytes": wire.size_bytes,
                "time_ms": ms(wire.time_ns),
                "busbw_gbytes": round(wire.busbw_gbytes, 6),
                "includes_waiting": wire.includes_waiting,
            }
            for wire in job.wires
        ],
        "notes": [
            *job.notes,
            *(f"{rank.name}: {note}" for rank in job.ranks for note in rank.notes),
        ],
    }


def ms(ns: int | None) -> float | None:
    """Nanoseconds as milliseconds, to the nanosecond."""
    return None if ns is None else round(ns / 1e6, 6)


def _ratio(value: float | None) -> float | None:
    return None if value is None else round(value, 6)


def _rank_json(rank: RankFacts) -> dict[str, object]:
    return {
        "file": rank.file,
        "rank": rank.rank,
        "device": rank.device,
        "host": rank.host,
        "layout": rank.layout,
        "backend": rank.backend,
        "nccl_version": rank.library,
        "framework": rank.framework,
        "device_events_in_no_step": rank.outside,
        "device_events_without_launch": rank.unlinked,
        "collective_calls_on_host": rank.records,
        "median_step_ms": ms(rank.median_ns),
        "overlap_ratio": _ratio(rank.overlap),
        "steps": [
            {
                "name": step.name,
                "step_time_ms": ms(step.time_ns),
                "host_step_ms": ms(step.host_ns),
                "compute_busy_ms": ms(step.compute_ns),
                "comm_busy_ms": ms(step.comm_ns),
                "mem_busy_ms": ms(step.mem_ns),
                "overlapped_ms": ms(step.overlapped_ns),
                "exposed_comm_ms": ms(step.exposed_ns),
                "exposed_comm_strict_ms": ms(step.exposed_strict_ns),
                "bubble_ms": ms(step.bubble_ns),
                "undescribed_ms": ms(step.untold_ns),
                "exposed_by_role_ms": {
                    role: ms(part.exposed_ns) for role, part in step.roles.items()
                },
                "longest_blank_ms": ms(step.longest_blank_ns),
                "mem_extra_ms": ms(step.mem_extra_ns),
                "idle_ms": ms(step.idle_ns),
                "host_wait_idle_ms": ms(step.host_gap_ns),
                "host_only_wait_ms": ms(step.host_wait_ns),
                "host_pause_ms": ms(step.pause_ns),
                "input_idle_ms": ms(step.input_ns),
                "forward_ms": ms(step.forward_ns),
                "gather_ms": ms(step.gather_ns),
                "gather_exposed_ms": ms(step.gather_exposed_ns),
                "kernels": step.kernels,
                "comm_kernels": step.comm_kernels,
            }
            for step in rank.steps
        ],
        "collectives": [
            {
                "collective": move.kind,
                "group": move.group,
                "group_size": move.group_size,
                "group_about": move.about,
                "count": move.count,
                "bytes": move.size_bytes,
                "time_ms": ms(move.time_ns),
                "algbw_gbytes": _ratio(move.algbw_gbytes),
                "busbw_gbytes": _ratio(move.busbw_gbytes),
                "sizes": sorted([size, count] for size, count in move.sizes.items())[:64],
            }
            for move in rank.moved
        ],
        "hccl": _hccl_json(rank.hccl),
    }


def _hccl_json(hccl: Hccl | None) -> dict[str, object] | None:
    if hccl is None:
        return None
    return {
        "operators": hccl.count,
        "moving_ms": ms(hccl.moved_ns),
        "waiting_ms": ms(hccl.waited_ns),
        "waiting_ratio": _ratio(hccl.waited),
        "links": [
            {"link": link.name, "bytes": link.size_bytes, "gbytes_per_s": round(link.gbytes, 6)}
            for link in hccl.links
        ],
    }


def _skew_json(skew: Skew | None) -> dict[str, object] | None:
    if skew is None:
        return None
    return {
        "collectives": skew.collectives,
        "mean_start_skew_ms": ms(skew.mean_ns),
        "max_start_skew_ms": ms(skew.most_ns),
        "step_skew_ms": ms(skew.step_ns),
        "mean_lateness_ms": {n: ms(v) for n, v in zip(skew.ranks, skew.late_ns, strict=True)},
        "step_lateness_ms": {n: ms(v) for n, v in zip(skew.ranks, skew.late_step_ns, strict=True)},
        "wait_ms": {n: ms(v) for n, v in zip(skew.ranks, skew.wait_ns, strict=True)},
        "clock_offset_us": {n: v / 1000 for n, v in zip(skew.ranks, skew.offset_ns, strict=True)},
    }
