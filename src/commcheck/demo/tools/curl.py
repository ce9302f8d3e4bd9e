"""``curl`` of the port of NCCL's RAS service: what the running job answers."""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator
from typing import Final

from commcheck.demo.job import FIRST_PID, HOSTS, comm_id
from commcheck.demo.parts import Answer
from commcheck.demo.state import HostState

TOOLS: Final = ("curl",)

_URL: Final = "gopher://localhost:28028/_set%20format%20json%0Averbose%20status"
_STEPS_BEFORE: Final = 4117
_REFUSED: Final = 7


def answers(host: HostState, queries: Iterable[str]) -> Iterator[Answer]:
    """Every second a step; without a job nobody listens."""
    argv = ("curl", "-s", "-m", "13", _URL)
    if host.job is None or not host.job.ras:
        yield Answer(argv, "", rc=_REFUSED)
        return
    yield Answer(argv, f"OK\n{json.dumps(_report(host, _STEPS_BEFORE + host.second), indent=2)}\n")


def _report(host: HostState, steps: int) -> dict[str, object]:
    size = len(host.gpus)
    ranks, missing = [], []
    lost = host.job.lost if host.job is not None else frozenset()
    here = (host.number - 1) % HOSTS
    for rank in range(HOSTS * size):
        node, local = divmod(rank, size)
        told: dict[str, object] = {
            "rank": rank,
            "host": f"192.0.2.{host.number - here + node}",
            "pid": FIRST_PID + local,
            "cuda_dev": local,
            "nvml_dev": local,
        }
        if node == here and local in lost:
            status: dict[str, object] = {"unresponsive": True, "considered_dead": True}
            missing.append({**told, "status": status})
        else:
            ranks.append({**told, "status": _FINE, "collective_counts": _counts(steps)})
    return {
        "nccl_version": "2.28.9",
        "cuda_runtime_version": 12080,
        "cuda_driver_version": 12080,
        "timestamp": "2026-01-01 00:00:00",
        "communicators_count": 1,
        "communicators": [
            {
                "hash": comm_id(host),
                "secondary_hash": "0x1:0x2",
                "size": HOSTS * size,
                "ranks_count": len(ranks),
                "missing_ranks_count": len(missing),
                "ranks": ranks,
                "missing_ranks": missing,
            }
        ],
        "ras": {"collection_time_sec": 0.002, "timeouts_count": 0},
    }


_FINE: Final = {
    "init_state": 0,
    "async_error": 0,
    "finalize_called": False,
    "destroy_flag": False,
    "abort_flag": False,
}


def _counts(steps: int) -> dict[str, int]:
    return {"Broadcast": 2, "Reduce": 0, "AllGather": 0, "ReduceScatter": 0, "AllReduce": steps}
