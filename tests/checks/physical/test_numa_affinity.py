"""physical.numa-affinity"""

from __future__ import annotations

from typing import Any

import pytest

from checks.physical.numa_affinity import CHECK, NOT_TOLD, Seen, judge
from commcheck.check import Nothing
from commcheck.formats.nvidia_affinity import GpuPlace
from commcheck.model import Kind, Machine, Status

ONE = Machine("gpu-01", "gpu-roce")
TWO_NODES = frozenset({0, 1})


@pytest.mark.parametrize(
    ("topo", "nodes", "status", "says"),
    [
        ("nvidia-smi/topo-h100-good.txt", "0-1\n", Status.PASS, "of 8 GPUs is known, of 2"),
        ("gpu-health/topo-no-numa.txt", "0-1\n", Status.WARN, "none is told for GPU0, GPU1"),
        ("gpu-health/topo-no-numa.txt", "0\n", Status.SKIP, "one NUMA node"),
    ],
)
def test_recorded(judged: Any, topo: str, nodes: str, status: Status, says: str) -> None:
    said = {"nvidia-smi topo": (topo, 0), "cat /sys/devices/system/node": (nodes, 0)}
    verdict = judged(CHECK, said, machine=ONE).verdict
    assert (verdict.status, says in verdict.reason) == (status, True)
    assert verdict.cause is (NOT_TOLD if status is Status.WARN else None)


@pytest.mark.parametrize(
    ("numa", "machine", "status", "kind"),
    [
        ("1", ONE, Status.PASS, Kind.NONE),
        ("0-1", ONE, Status.WARN, Kind.NONE),  # all of them is none of them
        (None, ONE, Status.SKIP, Kind.UNDECIDABLE),
        ("N/A", Machine("g", "gpu-roce", in_vm=True), Status.SKIP, Kind.NOT_APPLICABLE),
    ],
)
def test_nodes(numa: str | None, machine: Machine, status: Status, kind: Kind) -> None:
    seen = Seen((GpuPlace("GPU0", "0-47", numa),), TWO_NODES)
    verdict = judge(seen, machine, Nothing(), Nothing())
    assert (verdict.status, verdict.kind) == (status, kind)
