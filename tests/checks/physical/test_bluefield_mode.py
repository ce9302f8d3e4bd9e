"""physical.bluefield-mode"""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from checks.physical.bluefield_mode import CHECK
from checks.physical.pfc_enabled import CHECK as PFC_ENABLED
from commcheck.applies import qos_owner
from commcheck.collect.base import Frame
from commcheck.judge import judge_host
from commcheck.model import Host, Kind, Machine, Status
from commcheck.plan import Asked, requests
from tests.checks.conftest import RAIL, RECORDED

CARD = replace(RAIL, pci_id=0xA2DC, pci="0000:18:00.0")
MACHINE = Machine("gpu-01", "gpu-roce", rails=(CARD,))
DPU = {"mlxconfig": ("mlxconfig/bluefield-dpu-mode.txt", 0)}
NIC = {"mlxconfig": ("mlxconfig/bluefield-nic-mode.txt", 0)}


def test_nic_mode(judged: Any) -> None:
    verdict = judged(CHECK, NIC, machine=MACHINE).verdict
    assert verdict.status is Status.PASS
    # The open tool speaks where the vendor's is missing.
    open_tool = {"mstconfig": NIC["mlxconfig"]}
    assert judged(CHECK, open_tool, machine=MACHINE).verdict.status is Status.PASS


def test_other_cards_are_not_asked(judged: Any) -> None:
    machine = Machine("gpu-01", "gpu-roce", rails=(replace(RAIL, pci_id=0x1021),))
    assert judged(CHECK, NIC, machine=machine).verdict.kind is Kind.NOT_APPLICABLE
    assert requests(Host("gpu-01"), machine, [Asked(CHECK)]) == ()


@pytest.mark.parametrize(
    ("answers", "declared", "status", "kind", "says"),
    [
        (DPU, {}, Status.SKIP, Kind.UNDECIDABLE, "declare commcheck_bluefield_mode: dpu"),
        (DPU, {"bluefield_mode": "dpu"}, Status.SKIP, Kind.NOT_APPLICABLE, "as declared"),
        (DPU, {"bluefield_mode": "nic"}, Status.SKIP, Kind.UNDECIDABLE, "NIC mode is declared"),
        (NIC, {"bluefield_mode": "dpu"}, Status.SKIP, Kind.UNDECIDABLE, "DPU mode is declared"),
        ({}, {}, Status.ERROR, Kind.CHECK, "nothing tells its mode"),
        ({}, {"bluefield_mode": "nic"}, Status.SKIP, Kind.NOT_APPLICABLE, "is declared"),
        (
            {"mlxconfig": ("mlxconfig/query-eth-good.txt", 0)},
            {},
            Status.ERROR,
            Kind.CHECK,
            "tells no mode",
        ),
    ],
)
def test_what_is_no_plain_nic_mode(
    judged: Any, answers: Any, declared: Any, status: Status, kind: Kind, says: str
) -> None:
    verdict = judged(CHECK, answers, machine=MACHINE, **declared).verdict
    assert (verdict.status, verdict.kind) == (status, kind)
    assert says in verdict.reason


@pytest.mark.parametrize("answers", [DPU, {}])
def test_qos_is_blocked_by_dpu_mode_and_unproven_where_the_mode_is_not_told(answers: Any) -> None:
    host, asked = Host("gpu-01"), [Asked(CHECK), Asked(PFC_ENABLED)]
    frames = {}
    for request in requests(host, MACHINE, asked):
        name, rc = {**answers, "mlnx_qos": ("mlnx_qos/good-dscp-prio3.txt", 0)}.get(
            request.command.argv[0], ("", 127)
        )
        text = (RECORDED / name).read_bytes() if name else b""
        frames[request.key] = Frame(request.key, text, b"", rc, 1.0, 1.1)
    _, pfc = judge_host(host, asked, MACHINE, frames, None, lambda data: data.decode())
    if answers:
        reason = "blocked: physical.bluefield-mode is undecidable on mlx5_0"
        assert pfc.worst.verdict.reason == reason
    else:
        assert pfc.status is Status.PASS
        assert pfc.worst.unproven_below == ("physical.bluefield-mode",)


def test_where_the_arm_side_owns_qos_the_host_is_not_asked_of_it() -> None:
    assert qos_owner(CARD) is None
    said = qos_owner(replace(CARD, qos_on_arm=True))
    assert said == "mlx5_0 is a BlueField in DPU mode: read this on its Arm side"
