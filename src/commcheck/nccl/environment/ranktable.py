"""HCCL's rank table: which NPU is which rank, in the JSON that RANK_TABLE_FILE names.

Keys: CANN's HCCL user guide, "rank table configuration"; MindCluster writes the same as hccl.json,
and several in one file as ``server_group_list``.
"""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Iterator
from typing import Any

from commcheck.kube.manifest import config_maps, documents
from commcheck.lazy import dataclass


@dataclass(frozen=True, slots=True)
class Npu:
    """One line of the table, each text as it stands there; "" where it does not."""

    rank: str
    server: str
    device: str
    address: str

    def __str__(self) -> str:
        return f"rank {self.rank} (device {self.device} of {self.server})"


@dataclass(frozen=True, slots=True)
class RankTable:
    """The NPUs of one job. ``status``: "completed" where it may be used."""

    where: str
    status: str
    npus: tuple[Npu, ...]

    @property
    def servers(self) -> int:
        """How many servers it names."""
        return len({npu.server for npu in self.npus})

    @property
    def faults(self) -> Iterator[str]:
        """What no rank table may say."""
        if self.status and self.status != "completed":
            yield f"its status is {self.status!r}: it is not complete yet"
        for what, told in (
            ("rank_id", [npu.rank for npu in self.npus]),
            ("device_ip", [npu.address for npu in self.npus]),
            ("device_id", [npu.device and f"{npu.device} of {npu.server}" for npu in self.npus]),
        ):
            for value, count in Counter(told).items():
                if count > 1 and value:
                    twice = [n for n, each in zip(self.npus, told, strict=True) if each == value]
                    yield f"{what} {value} stands there {count} times: {_some(twice)}"


def _some(npus: list[Npu]) -> str:
    shown = ", ".join(str(npu) for npu in npus[:3])
    return shown if len(npus) <= 3 else f"{shown} and {len(npus) - 3} more"


def rank_tables(text: str, where: str) -> tuple[RankTable, ...]:
    """The tables of a text, or in the ConfigMaps of one; none where it is something else."""
    if "server_list" not in text:
        return ()
    try:
        told = json.loads(text)
    except (ValueError, RecursionError):
        told = None
    if not isinstance(told, dict) or "kind" in told:
        # MindCluster keeps it in a map, rings-config-JOB.
        return tuple(
            table
            for name, data in config_maps(documents(text)).items()
            for key, value in data.items()
            if isinstance(value, str)
            for table in rank_tables(value, f"{where} ({name}: {key})")
        )
    groups = told.get("server_group_list")
    parts = [told, *(groups if isinstance(groups, list) else ())]
    tables = (_table(part, told, where) for part in parts if isinstance(part, dict))
    return tuple(table for table in tables if table.npus)


def _table(part: dict[str, Any], whole: dict[str, Any], where: str) -> RankTable:
    npus = []
    for server in _dicts(part.get("server_list")):
        for device in _dicts(server.get("device")):
            npus.append(
                Npu(
                    _text(device, "rank_id"),
                    _text(server, "server_id"),
                    _text(device, "device_id"),
                    _text(device, "device_ip"),
                )
            )
    return RankTable(where, _text(whole, "status"), tuple(npus))


def _dicts(value: Any) -> list[dict[str, Any]]:
    return [each for each in value if isinstance(each, dict)] if isinstance(value, list) else []


def _text(told: dict[str, Any], key: str) -> str:
    value = told.get(key)
    return str(value)[:64] if isinstance(value, str | int) else ""
