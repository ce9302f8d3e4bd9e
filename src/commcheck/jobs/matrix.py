"""The picture of a pair scan: busbw of every pair that ran."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from commcheck.jobs.outcomes import Outcome
from commcheck.model import Figure, Words

_MOST_CELLS: Final = 2000


def matrix(
    hosts: Sequence[str],
    outcomes: Sequence[Outcome],
    floor_gbytes: float | None,
    rail: int | None = None,
) -> Figure:
    """busbw of every pair that ran, in GB/s. A large fleet shows only hosts with a failed run."""
    cells: dict[frozenset[str], float] = {}
    failed: set[str] = set()
    for outcome in outcomes:
        pair = outcome.run.pair
        if pair is None or outcome.run.rail != rail or outcome.busbw_gbytes is None:
            continue
        cells[pair] = outcome.busbw_gbytes
        if outcome.good is False:
            failed.update(pair)
    rows = list(hosts)
    if len(hosts) ** 2 > _MOST_CELLS:
        rows = [host for host in hosts if host in failed]
    columns = list(hosts)
    if len(rows) * len(columns) > _MOST_CELLS:
        met = {host for pair in cells if pair & set(rows) for host in pair}
        columns = [host for host in hosts if host in met]
    rows = rows[: max(_MOST_CELLS // max(len(columns), 1), 1)]
    return Figure(
        form="matrix",
        title=Words("Bus bandwidth of host pairs", "主机对的总线带宽"),
        data={
            "rows": rows,
            "columns": columns,
            "unit": "GB/s",
            "cells": [[cells.get(frozenset({row, column})) for column in columns] for row in rows],
            "floor": floor_gbytes,
        },
    )
