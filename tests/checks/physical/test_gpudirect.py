"""physical.gpudirect"""

from __future__ import annotations

from typing import Any

import pytest

from checks.physical.gpudirect import CHECK, NEITHER
from commcheck.model import Kind, Machine, Status

NEW, OLD = "Linux 5.15.0-105-generic", "Linux 5.11.0-49-generic"
OPEN = {"cat /proc/driver": ("nvidia-version/open-550.txt", 0)}
CLOSED = {"cat /proc/driver": ("nvidia-version/proprietary-535.txt", 0)}


def loaded(name: str) -> dict[str, tuple[str, int]]:
    return {"lsmod": (f"modules/lsmod-{name}.txt", 0)}


def on(kernel: str) -> Machine:
    return Machine("gpu-01", "gpu-roce", kernel=kernel)


@pytest.mark.parametrize(
    ("name", "module"), [("peermem", "nvidia_peermem"), ("legacy-nv-peer-mem", "nv_peer_mem")]
)
def test_a_peer_memory_module_is_enough(judged: Any, name: str, module: str) -> None:
    verdict = judged(CHECK, loaded(name), machine=on(OLD)).verdict
    assert (verdict.status, verdict.reason) == (Status.PASS, f"{module} is loaded")


@pytest.mark.parametrize(
    ("driver", "kernel", "status", "says"),
    [
        (OPEN, NEW, Status.PASS, "DMA-BUF is possible"),
        (OPEN, "Linux 5.12.0", Status.PASS, "NCCL 2.13 or newer"),
        (OPEN, "Linux 6.1.0", Status.PASS, "open modules"),
        (OPEN, OLD, Status.FAIL, "wants kernel 5.12"),
        (OPEN, "Linux 4.18.0-513.el8", Status.FAIL, "wants kernel 5.12"),
        (CLOSED, NEW, Status.FAIL, "has not the open modules"),
        (OPEN, "", Status.SKIP, "not known"),
        ({}, NEW, Status.SKIP, "nothing tells"),
    ],
)
def test_dma_buf(
    judged: Any, driver: dict[str, tuple[str, int]], kernel: str, status: Status, says: str
) -> None:
    verdict = judged(CHECK, loaded("no-peermem") | driver, machine=on(kernel)).verdict
    assert verdict.status is status
    assert says in verdict.reason
    assert verdict.cause is (NEITHER if status is Status.FAIL else None)
    if status is Status.SKIP:
        assert verdict.kind is Kind.UNDECIDABLE
    if status is Status.FAIL:
        assert verdict.remedies[0].command == "modprobe nvidia-peermem"


def test_the_kernels_own_list_where_kmod_is_missing(judged: Any) -> None:
    listed = "nvidia_peermem 16384 0 - Live 0x0000000000000000\n"
    finding = judged(CHECK, {"cat /proc/modules": (listed, 0)}, machine=on(NEW))
    assert finding.verdict.status is Status.PASS


def test_unreadable(judged: Any) -> None:
    nothing = judged(CHECK, OPEN, machine=on(NEW)).verdict
    assert (nothing.status, nothing.kind) == (Status.ERROR, Kind.CHECK)
    empty = judged(CHECK, {"lsmod": ("Module  Size  Used by\n", 0)}, machine=on(NEW)).verdict
    assert empty.status is Status.ERROR
