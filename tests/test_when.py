"""``when``: what holds, what does not, and that the unknown never takes a check away."""

from __future__ import annotations

from collections.abc import Mapping

import pytest

from commcheck.errors import Position
from commcheck.model import Accelerator, Host, Machine, Rail, Subject
from commcheck.when import When

AT = Position("p.yaml", 1)
HOST = Host(
    "gpu-01",
    variables={"leaf": "leaf-1", "slot": 3, "text": "3", "spare": False},
    groups=("gpu", "rack1"),
)
ETH = Rail(0, "mlx5_0", link_layer="Ethernet", driver="mlx5_core")
IB = Rail(1, "mlx5_1", link_layer="InfiniBand", driver="mlx5_core")
DARK = Rail(2, "mlx5_2")
GPU = Accelerator(0, "nvidia")


def machine(*rails: Rail, platform: str = "unknown", gpus: tuple[Accelerator, ...] = ()) -> Machine:
    return Machine("gpu-01", platform=platform, rails=rails, accelerators=gpus)


@pytest.mark.parametrize(
    ("when", "reason"),
    [
        (When(AT), None),
        (When(AT, group=("gpu",)), None),
        (When(AT, group=("all",)), None),
        (When(AT, group=("ib", "rack1")), None),
        (When(AT, group=("ib", "rack2")), "when group is ib or rack2"),
        (When(AT, group=("ungrouped",)), "when group is ungrouped"),
        (When(AT, not_group=("spare",)), None),
        (When(AT, not_group=("spare", "rack1")), "when group is not rack1"),
        (When(AT, group=("gpu",), not_group=("rack1",)), "when group is not rack1"),
        (When(AT, var={"leaf": "leaf-1", "slot": 3}), None),
        (When(AT, var={"text": 3}), None),
        (When(AT, var={"slot": "3"}), "when var slot is 3"),
        (When(AT, var={"spare": False}), None),
        (When(AT, var={"spare": 0}), "when var spare is 0"),
        (When(AT, var={"spare": "False"}), "when var spare is False"),
        (When(AT, var={"nowhere": "x"}), "when var nowhere is x"),
    ],
)
def test_inventory(when: When, reason: str | None) -> None:
    here = machine()
    assert when.not_applicable(HOST, here, here) == reason


def test_a_host_of_no_group_is_ungrouped() -> None:
    here = machine()
    assert When(AT, group=("ungrouped",)).not_applicable(Host("x"), here, here) is None


@pytest.mark.parametrize(
    ("wanted", "given", "reason"),
    [
        ({"link_layer": ("Ethernet",)}, ETH, None),
        ({"link_layer": ("Ethernet",)}, IB, "when link_layer is Ethernet, and here is InfiniBand"),
        ({"link_layer": ("Ethernet", "InfiniBand")}, IB, None),
        ({"link_layer": ("Ethernet",)}, DARK, None),  # not known: stays
        ({"driver": ("bnxt_re",)}, ETH, "when driver is bnxt_re, and here is mlx5_core"),
        ({"link_layer": ("InfiniBand",)}, machine(ETH, IB), None),  # one port is enough
        ({"link_layer": ("InfiniBand",)}, machine(ETH, DARK), None),
        ({"link_layer": ("InfiniBand",)}, machine(), None),
        (
            {"link_layer": ("InfiniBand",)},
            machine(ETH),
            "when link_layer is InfiniBand, and here is Ethernet",
        ),
        ({"accelerator": ("nvidia",)}, machine(gpus=(GPU,)), None),
        (
            {"accelerator": ("ascend",)},
            machine(gpus=(GPU,)),
            "when accelerator is ascend, and here is nvidia",
        ),
        ({"accelerator": ("none",)}, machine(), None),
        # All its GPUs fell off the bus: it is still a GPU host.
        ({"accelerator": ("nvidia",)}, machine(platform="gpu-roce"), None),
        (
            {"accelerator": ("nvidia",)},
            machine(platform="ascend"),
            "when accelerator is nvidia, and here is ascend",
        ),
    ],
)
def test_hardware(
    wanted: Mapping[str, tuple[str, ...]], given: Subject, reason: str | None
) -> None:
    here = given if isinstance(given, Machine) else machine(ETH, IB, DARK)
    assert When(AT, **wanted).not_applicable(HOST, here, given) == reason  # type: ignore[arg-type]
