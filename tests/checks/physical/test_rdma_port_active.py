"""physical.rdma-port-active"""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from checks.physical.rdma_port_active import (
    BAD_CABLE,
    CHECK,
    DISABLED,
    NO_MANAGER,
    NO_PARTNER,
    NOT_ACTIVE,
)
from commcheck.model import Cause, Kind, Machine, Rail, Status


def on(rail: Rail, **change: Any) -> Machine:
    layer = change.get("link_layer", rail.link_layer)
    platform = "gpu-ib" if layer == "InfiniBand" else "gpu-roce"
    return Machine("gpu-01", platform, rails=(replace(rail, **change),))


@pytest.mark.parametrize("link_layer", ["Ethernet", "InfiniBand", "Unspecified"])
@pytest.mark.parametrize("state", ["ACTIVE", "ACTIVE_DEFER"])
def test_active(judged: Any, rail: Rail, link_layer: str, state: str) -> None:
    verdict = judged(CHECK, machine=on(rail, link_layer=link_layer, state=state)).verdict
    assert verdict.status is Status.PASS
    assert verdict.reason == f"mlx5_0 is {state} (LinkUp)"


@pytest.mark.parametrize(
    ("link_layer", "state", "phys", "cause"),
    [
        ("Ethernet", "DOWN", "Disabled", DISABLED),
        ("Ethernet", "DOWN", "Polling", NO_PARTNER),
        ("Ethernet", "DOWN", "LinkUp", NOT_ACTIVE),
        ("Ethernet", "INIT", "LinkUp", NOT_ACTIVE),
        ("Ethernet", "DOWN", None, NOT_ACTIVE),
        ("InfiniBand", "INIT", "LinkUp", NO_MANAGER),
        ("InfiniBand", "ARMED", "LinkUp", NO_MANAGER),
        ("InfiniBand", "DOWN", "Polling", NO_PARTNER),
        ("InfiniBand", "DOWN", "PortConfigurationTraining", NO_PARTNER),
        ("InfiniBand", "DOWN", "LinkErrorRecovery", BAD_CABLE),
        ("InfiniBand", "DOWN", "Disabled", DISABLED),
        ("InfiniBand", "DOWN", "Sleep", DISABLED),
    ],
)
def test_not_active(
    judged: Any, rail: Rail, link_layer: str, state: str, phys: str | None, cause: Cause
) -> None:
    machine = on(rail, link_layer=link_layer, state=state, phys_state=phys)
    verdict = judged(CHECK, machine=machine).verdict
    assert (verdict.status, verdict.cause) == (Status.FAIL, cause)
    assert verdict.reason.endswith("want ACTIVE")
    assert "{" not in "".join(remedy.command for remedy in verdict.remedies)


def test_remedies_name_the_port(judged: Any, rail: Rail) -> None:
    down = judged(CHECK, machine=on(rail, state="DOWN", phys_state="Disabled", port=2)).verdict
    assert [remedy.command for remedy in down.remedies] == [
        "rdma link show mlx5_0/2",
        "mlxlink -d 0000:81:00.0 --port_state UP",
    ]


def test_what_nothing_calls_a_rail_or_does_not_tell_is_undecidable(judged: Any, rail: Rail) -> None:
    dark = judged(CHECK, machine=on(rail, state="DOWN", fabric=None)).verdict
    assert dark.kind is Kind.UNDECIDABLE
    assert "declare commcheck_nics" in dark.reason
    assert judged(CHECK, machine=on(rail, state=None)).verdict.kind is Kind.UNDECIDABLE
