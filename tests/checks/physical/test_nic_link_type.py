"""physical.nic-link-type"""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from checks.physical.nic_link_type import CHECK, WRONG
from commcheck.model import Kind, Machine, Rail, Status


def on(platform: str, rail: Rail, link_layer: str | None, **more: Any) -> Machine:
    return Machine("gpu-01", platform, rails=(replace(rail, link_layer=link_layer, **more),))


@pytest.mark.parametrize(
    ("platform", "link_layer"), [("gpu-roce", "Ethernet"), ("gpu-ib", "InfiniBand")]
)
def test_right(judged: Any, rail: Rail, platform: str, link_layer: str) -> None:
    verdict = judged(CHECK, machine=on(platform, rail, link_layer)).verdict
    assert verdict.status is Status.PASS
    assert verdict.reason == f"mlx5_0 is {link_layer}"


@pytest.mark.parametrize(
    ("platform", "link_layer", "mode"),
    [("gpu-roce", "InfiniBand", 2), ("gpu-ib", "Ethernet", 1)],
)
def test_wrong(judged: Any, rail: Rail, platform: str, link_layer: str, mode: int) -> None:
    verdict = judged(CHECK, machine=on(platform, rail, link_layer)).verdict
    assert (verdict.status, verdict.cause) == (Status.FAIL, WRONG)
    assert [remedy.command for remedy in verdict.remedies] == [
        "mlxconfig -d 0000:81:00.0 q LINK_TYPE_P1",
        f"mlxconfig -d 0000:81:00.0 s LINK_TYPE_P1={mode}",
    ]
    second = judged(CHECK, machine=on(platform, rail, link_layer, port=2, pci=None)).verdict
    assert second.remedies[1].command == f"mlxconfig -d <PCI> s LINK_TYPE_P2={mode}"


def test_the_inventory_decides(judged: Any, rail: Rail) -> None:
    machine = on("gpu-roce", rail, "InfiniBand")
    assert judged(CHECK, machine=machine, link_layer="InfiniBand").verdict.status is Status.PASS


@pytest.mark.parametrize(
    ("link_layer", "kind"), [(None, Kind.UNDECIDABLE), ("Unspecified", Kind.NOT_APPLICABLE)]
)
def test_what_is_not_told_is_not_wrong(
    judged: Any, rail: Rail, link_layer: str | None, kind: Kind
) -> None:
    verdict = judged(CHECK, machine=on("gpu-roce", rail, link_layer)).verdict
    assert verdict.kind is kind
