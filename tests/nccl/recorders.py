"""Flight recorders of a few ranks, made for a test."""

from __future__ import annotations

from typing import Any

from commcheck.nccl import flight
from commcheck.nccl.flight_groups import by_rank


def entry(seq: int, **more: Any) -> dict[str, Any]:
    """One collective, as torch 2.13 writes it."""
    told: dict[str, Any] = {
        "collective_seq_id": seq,
        "process_group": ("0", "default_pg"),
        "profiling_name": "nccl:all_reduce",
        "input_sizes": [[1024]],
        "input_dtypes": ["Float"],
        "output_sizes": [[1024]],
        "state": "completed",
        "is_p2p": False,
        "op_id": seq,
    }
    return {**told, **more}


def dumps(
    *ranks: list[dict[str, Any]],
    members: int | None = None,
    groups: dict[str, list[int]] | None = None,
    version: str = "2.10",
) -> dict[int, flight.Dump]:
    """The dump of each rank; ``groups``: members of further groups than the default one."""
    of_groups = {"0": list(range(members or len(ranks))), **(groups or {})}
    config = {
        name: {"ranks": str(of), "desc": "" if name != "0" else "default_pg"}
        for name, of in of_groups.items()
    }
    return by_rank(
        [
            flight.dump({"version": version, "entries": entries, "pg_config": config}, f"r_{rank}")
            for rank, entries in enumerate(ranks)
        ]
    )


DONE, IN = entry(1), entry(2, state="started")
