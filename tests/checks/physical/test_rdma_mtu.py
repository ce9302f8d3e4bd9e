"""physical.rdma-mtu"""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from checks.physical.rdma_mtu import CHECK, IB_SMALL, ROCE_SMALL
from commcheck.model import Kind, Machine, Rail, Status

RECORDED = Path(__file__).parents[2] / "recorded" / "ibv_devinfo"


def said(name: str, rc: int = 0) -> dict[str, tuple[str, int]]:
    return {"ibv_devinfo": (f"ibv_devinfo/{name}", rc)}


def on(rail: Rail, platform: str = "gpu-roce", **change: Any) -> Machine:
    return Machine("gpu-01", platform, rails=(replace(rail, **change),))


@pytest.mark.parametrize(
    ("name", "hca", "platform"),
    [
        ("roce-400g-good.txt", "mlx5_0", "gpu-roce"),
        ("roce-8hca-good.txt", "mlx5_7", "gpu-roce"),
        ("roce-bond.txt", "mlx5_bond_0", "gpu-roce"),
        ("roce-udev-names.txt", "rocep130s0", "gpu-roce"),
        ("roce-verbose-400g.txt", "mlx5_0", "gpu-roce"),
        ("bnxt-good.txt", "bnxt_re0", "gpu-roce"),
        ("ib-ndr-good.txt", "mlx5_0", "gpu-ib"),
    ],
)
def test_4096(judged: Any, rail: Rail, name: str, hca: str, platform: str) -> None:
    verdict = judged(CHECK, said(name), machine=on(rail, platform, hca=hca)).verdict
    assert verdict.status is Status.PASS
    assert verdict.measured == {"active_mtu_bytes": 4096, "max_mtu_bytes": 4096}


def test_1024(judged: Any) -> None:
    verdict = judged(CHECK, said("roce-mtu-1024.txt")).verdict
    assert (verdict.status, verdict.cause) == (Status.FAIL, ROCE_SMALL)
    assert verdict.reason == "mlx5_0 has an active MTU of 1024, want 4096"
    assert verdict.remedies[0].command == "ip -d link show ens1np0"
    assert judged(CHECK, said("roce-mtu-1024.txt"), rdma_mtu=1024).verdict.status is Status.PASS


def test_more_than_declared_is_enough(judged: Any) -> None:
    assert judged(CHECK, said("roce-400g-good.txt"), rdma_mtu=2048).verdict.status is Status.PASS


def test_infiniband_is_the_subnet_managers(judged: Any, rail: Rail) -> None:
    text = (RECORDED / "ib-ndr-good.txt").read_text()
    text = text.replace("active_mtu:\t\t4096 (5)", "active_mtu:\t\t2048 (4)")
    verdict = judged(CHECK, {"ibv_devinfo": (text, 0)}, machine=on(rail, "gpu-ib")).verdict
    assert (verdict.status, verdict.cause) == (Status.FAIL, IB_SMALL)
    assert verdict.remedies[0].who == "network team"


def test_a_port_that_is_down_has_no_active_mtu(judged: Any, rail: Rail) -> None:
    machine = on(rail, hca="mlx5_1")
    verdict = judged(CHECK, said("roce-port-down.txt"), machine=machine).verdict
    assert verdict.kind is Kind.UNDECIDABLE
    assert "means nothing" in verdict.reason


@pytest.mark.parametrize(
    ("name", "rc", "error"),
    [
        ("command-not-found.txt", 127, "CommandMissing"),
        ("no-devices.txt", 255, "CommandFailed"),
        ("no-uverbs-module.txt", 255, "CommandFailed"),
        ("open-failed.txt", 1, "CommandFailed"),
        ("devices-list.txt", 0, "ParseError"),
        ("roce-udev-names.txt", 0, "ParseError"),  # another HCA's answer
    ],
)
def test_unreadable(judged: Any, name: str, rc: int, error: str) -> None:
    verdict = judged(CHECK, said(name, rc)).verdict
    assert (verdict.status, verdict.error) == (Status.ERROR, error)


def test_efa_has_none(judged: Any, rail: Rail) -> None:
    machine = on(rail, link_layer="Unspecified")
    assert judged(CHECK, machine=machine).verdict.kind is Kind.NOT_APPLICABLE
