"""HCCL's rank table: which NPU is which rank, in the JSON that RANK_TABLE_FILE names.

Keys: CANN's HCCL user guide, "rank table configuration"; MindCluster writes the same as hccl.json,
and several in one file as ``server_group_list``. What HCCL refuses (EI0004, EI0014 since CANN 8.5):
gitcode.com/cann/hcomm, topoinfo_ranktableConcise.cc and CheckRankListInfo.
"""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Iterable, Iterator
from dataclasses import replace
from ipaddress import ip_address
from typing import Any, Final

from commcheck.kube.manifest import config_maps, documents
from commcheck.lazy import dataclass, regex
from commcheck.report.counts import many


@dataclass(frozen=True, slots=True)
class Npu:
    """One line of the table, each text as it stands there; "" where it does not."""

    rank: str
    server: str
    device: str
    address: str | None  # None: there is no such key, where there has to be one
    pod_device: str  # super_device_id

    def __str__(self) -> str:
        return f"rank {self.rank} (device {self.device} of {self.server})"


@dataclass(frozen=True, slots=True)
class SuperPod:
    """A super pod of a table of version 1.2, and the servers in it."""

    name: str
    servers: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class RankTable:
    """The NPUs of one job. ``status``: "completed" where it may be used.

    ``listed``: the servers, one for each entry; ``count``: how many it says they are, "" where it
    does not. ``whole``: HCCL reads it as it is, and not one of several in a file. ``planned``: it
    stands in a manifest that is applied, before MindCluster fills it in.
    """

    where: str
    status: str
    npus: tuple[Npu, ...]
    listed: tuple[str, ...]
    count: str
    pods: tuple[SuperPod, ...]
    whole: bool
    planned: bool = False

    @property
    def is_begun(self) -> bool:
        """True where MindCluster has not written yet who takes part."""
        return self.status == _BEGUN

    @property
    def servers(self) -> int:
        """How many servers it names."""
        return len({npu.server for npu in self.npus})

    @property
    def faults(self) -> Iterator[str]:
        """What no rank table may say."""
        if self.status not in ("", "completed", _BEGUN):
            yield f"its status is {self.status!r}, want 'completed'"
        elif self.whole and not self.is_begun:
            yield from self._servers()
            yield from self._ranks()
            yield from self._addresses()
            yield from self._pods()
        for what, told in (
            ("rank_id", [npu.rank for npu in self.npus]),
            ("device_ip", [npu.address for npu in self.npus]),
            ("device_id", [npu.device and f"{npu.device} of {npu.server}" for npu in self.npus]),
        ):
            for value, count in Counter(told).items():
                if count > 1 and value:
                    twice = [n for n, each in zip(self.npus, told, strict=True) if each == value]
                    yield f"{what} {value} stands there {count} times: {_some(twice)}"

    def _servers(self) -> Iterator[str]:
        if self.count and self.count != str(len(self.listed)):
            yield f"server_count is {self.count}, and server_list has {len(self.listed)}"
        yield from _twice("server_id", self.listed)

    def _ranks(self) -> Iterator[str]:
        ranks = {npu.rank for npu in self.npus}
        missing = [rank for rank in map(str, range(len(self.npus))) if rank not in ranks]
        if missing and len(ranks) == len(self.npus):  # of one that stands there twice it is said
            yield (
                f"{many(len(self.npus), 'NPU')}, and none is rank {_listed(missing)}: ranks are "
                "numbered from 0 without a gap"
            )

    def _addresses(self) -> Iterator[str]:
        lacking = [npu for npu in self.npus if npu.address is None]
        if lacking and len(self.listed) > 1:
            yield f"no device_ip, which several servers need: {_some(lacking)}"
        for npu in self.npus:
            for address in (npu.address or "").split(","):
                if address and not _is_address(address):
                    yield f"device_ip {address!r} is no address: {npu}"

    def _pods(self) -> Iterator[str]:
        if not self.pods:
            return
        yield from _twice("super_pod_id", [pod.name for pod in self.pods])
        inside = [server for pod in self.pods for server in pod.servers]
        for server in dict.fromkeys(inside):
            if server not in self.listed:
                yield f"super_pod_list has server {server}, and server_list does not"
        for server in dict.fromkeys(self.listed):
            if server not in inside:
                yield f"server {server} is in no super pod"
        if lacking := [npu for npu in self.npus if not npu.pod_device]:
            yield f"no super_device_id, which NPUs of a super pod need: {_some(lacking)}"
        for pod in self.pods:
            told = [npu.pod_device for npu in self.npus if npu.server in pod.servers]
            yield from _twice(f"super pod {pod.name}: super_device_id", told)


_SHOWN_MOST: Final = 3


def _twice(what: str, told: Iterable[str]) -> Iterator[str]:
    for value, count in Counter(told).items():
        if count > 1 and value:
            yield f"{what} {value} stands there {count} times"


def _is_address(text: str) -> bool:
    try:
        ip_address(text.strip())
    except ValueError:
        return False
    return True


def _some(npus: list[Npu]) -> str:
    return _listed([str(npu) for npu in npus])


def _listed(words: list[str]) -> str:
    more = len(words) - _SHOWN_MOST
    return ", ".join(words[:_SHOWN_MOST]) + (f" and {more} more" if more > 0 else "")


def rank_tables(text: str, where: str) -> tuple[RankTable, ...]:
    """The tables of a text, or in the ConfigMaps of one; none where it is something else."""
    if "server_list" not in text and not _IS_BEGUN.search(text):
        return ()
    try:
        told = json.loads(text)
    except (ValueError, RecursionError):
        told = None
    if not isinstance(told, dict) or "kind" in told:
        # MindCluster keeps it in a map, rings-config-JOB.
        planned = _OF_CLUSTER not in text
        return tuple(
            replace(table, planned=planned)
            for name, data in config_maps(documents(text)).items()
            for key, value in data.items()
            if isinstance(value, str)
            for table in rank_tables(value, f"{where} ({name}: {key})")
        )
    groups = told.get("server_group_list")
    parts = [told, *(groups if isinstance(groups, list) else ())]
    tables = (_table(part, told, where) for part in parts if isinstance(part, dict))
    return tuple(table for table in tables if table.npus or table.status == _BEGUN)


def _table(part: dict[str, Any], whole: dict[str, Any], where: str) -> RankTable:
    npus = []
    servers = _dicts(part.get("server_list"))
    for server in servers:
        for device in _dicts(server.get("device")):
            # Where the hosts' own NICs are used, the NPUs need no address.
            is_told = "device_ip" in device or "host_ip" in server
            npus.append(
                Npu(
                    _text(device, "rank_id"),
                    _text(server, "server_id"),
                    _text(device, "device_id"),
                    _text(device, "device_ip") if is_told else None,
                    _text(device, "super_device_id"),
                )
            )
    pods = _dicts(part.get("super_pod_list")) if _text(part, "version") == _SUPER_POD else ()
    return RankTable(
        where,
        _text(whole, "status"),
        tuple(npus),
        tuple(_text(server, "server_id") for server in servers),
        _text(part, "server_count"),
        tuple(
            SuperPod(
                _text(pod, "super_pod_id"),
                tuple(_text(server, "server_id") for server in _dicts(pod.get("server_list"))),
            )
            for pod in pods
        ),
        whole=part is whole,
    )


_SUPER_POD: Final = "1.2"
"""The version whose super pods HCCL reads."""

_BEGUN: Final = "initializing"
"""The status of a table of MindCluster that names nobody yet."""
_OF_CLUSTER: Final = "resourceVersion"
"""In what ``kubectl get -o yaml`` prints, and in no manifest that is applied."""
_IS_BEGUN: Final = regex(rf'"status"\s*:\s*"{_BEGUN}"')


def _dicts(value: Any) -> list[dict[str, Any]]:
    return [each for each in value if isinstance(each, dict)] if isinstance(value, list) else []


def _text(told: dict[str, Any], key: str) -> str:
    value = told.get(key)
    return str(value)[:64] if isinstance(value, str | int) else ""
