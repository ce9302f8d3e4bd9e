"""physical.rail-switch"""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from checks.physical.rail_switch import CHECK, OTHER_SWITCH, SWAPPED
from commcheck.model import Kind, Status

GOOD = (Path(__file__).parents[2] / "recorded" / "lldpctl" / "leaf-pfc3.json").read_text()


def said(text: str, rc: int = 0, host: str = "gpu-01") -> dict[str, tuple[str, int]]:
    return {"lldpctl": (text, rc), "cat /proc/sys/kernel/hostname": (f"{host}\n", 0)}


def test_switch_and_port_are_measured(judged: Any) -> None:
    verdict = judged(CHECK, said("lldpctl/leaf-pfc3.json")).verdict
    assert verdict.status is Status.PASS
    assert verdict.reason == "mlx5_0 (ens1np0) is on leaf-01 port Ethernet12"
    assert verdict.measured["switch"] == "leaf-01"
    assert verdict.measured["switch_port"] == "Ethernet12"


@pytest.mark.parametrize(
    "leaf", ["leaf-01", ["leaf-01"], {"mlx5_0": "LEAF-01.example.net"}, {"ens1np0": "leaf-01"}]
)
def test_the_declared_switch(judged: Any, leaf: object) -> None:
    verdict = judged(CHECK, said("lldpctl/leaf-pfc3.json"), leaf=leaf).verdict
    assert verdict.status is Status.PASS


def test_another_switch(judged: Any) -> None:
    verdict = judged(CHECK, said("lldpctl/leaf-pfc3.json"), leaf=["leaf-02"]).verdict
    assert (verdict.status, verdict.cause) == (Status.FAIL, OTHER_SWITCH)
    assert "leaf-01 port Ethernet12, want leaf-02" in verdict.reason


def test_two_hosts_swapped(judged: Any) -> None:
    verdict = judged(CHECK, said("lldpctl/description-other-host.json")).verdict
    assert (verdict.status, verdict.cause) == (Status.WARN, SWAPPED)
    assert "described as gpu-02:ens1np0, want gpu-01:ens1np0" in verdict.reason


@pytest.mark.parametrize(
    ("description", "is_swapped"),
    [
        ("gpu-01:ens2np0", True),  # two rails of one host
        ("gpu-01/mlx5_0", False),
        ("gpu-01 mlx5_3", True),
        ("gpu-01.example.net:ens1np0", False),
        ("rack 7, unit 12", False),
        ("storage-02:ens1np0", False),  # no host of this pattern
        ("gpu-01:eth0", False),  # another name of the same NIC, as the switch team calls it
        ("to gpu-02", False),
        ("", False),
    ],
)
def test_descriptions_are_free_text(judged: Any, description: str, is_swapped: bool) -> None:
    text = GOOD.replace("gpu-01:ens1np0", description)
    verdict = judged(CHECK, said(text)).verdict
    assert (verdict.cause is SWAPPED) is is_swapped


def test_the_cards_own_agent_is_no_switch(judged: Any) -> None:
    verdict = judged(CHECK, said("lldpctl/two-neighbours.json")).verdict
    assert verdict.measured["switch"] == "leaf-01"
    alone = judged(CHECK, said("lldpctl/nameless-no-dcbx.json"), leaf="5c:07:58:1f:9a:00").verdict
    assert alone.status is Status.PASS


def test_lldptool_speaks_where_lldpd_does_not_run(judged: Any) -> None:
    answers = said("lldpctl/not-running.txt", 1) | {"lldptool": ("lldptool/neighbor.txt", 0)}
    assert judged(CHECK, answers).verdict.status is Status.PASS


@pytest.mark.parametrize("answers", [{}, said("lldpctl/no-neighbour.json")])
def test_nobody_tells(judged: Any, answers: dict[str, tuple[str, int]]) -> None:
    assert judged(CHECK, answers).verdict.kind is Kind.NOT_APPLICABLE
    declared = judged(CHECK, answers, leaf="leaf-01").verdict
    assert declared.kind is Kind.UNDECIDABLE
    assert "run lldpd" in declared.reason


def test_an_unreadable_answer_is_no_pass(judged: Any) -> None:
    assert judged(CHECK, said("{\n")).verdict.kind is Kind.NOT_APPLICABLE
    assert judged(CHECK, said("{\n"), leaf="leaf-01").verdict.kind is Kind.UNDECIDABLE
