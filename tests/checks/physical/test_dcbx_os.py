"""physical.dcbx-os"""

from __future__ import annotations

from typing import Any

import pytest

from checks.physical.dcbx_os import CHECK, FIRMWARE, HOST
from commcheck.model import Kind, Status


def said(name: str, rc: int = 0) -> dict[str, tuple[str, int]]:
    return {"mlnx_qos": (f"mlnx_qos/{name}", rc)}


def test_the_host_rules(judged: Any) -> None:
    assert judged(CHECK, said("good-dscp-prio3.txt")).verdict.status is Status.PASS
    # lldpad is a daemon of the operating system.
    declared = judged(CHECK, said("good-dscp-prio3.txt"), dcbx="lldpad").verdict
    assert declared.status is Status.PASS


def test_the_firmware_rules(judged: Any) -> None:
    verdict = judged(CHECK, said("dcbx-fw.txt")).verdict
    assert (verdict.status, verdict.cause) == (Status.FAIL, FIRMWARE)
    assert verdict.remedies[1].command == "mlnx_qos -i ens1np0 -d os"
    assert judged(CHECK, said("dcbx-fw.txt"), dcbx="firmware").verdict.status is Status.PASS


def test_the_host_rules_where_the_switch_should(judged: Any) -> None:
    verdict = judged(CHECK, said("good-dscp-prio3.txt"), dcbx="firmware").verdict
    assert (verdict.status, verdict.cause) == (Status.FAIL, HOST)


def test_dcb_speaks_where_mlnx_qos_is_missing(judged: Any) -> None:
    answers = {
        "dcb -j pfc": ("dcb/pfc-good.json", 0),
        "dcb -j app": ("dcb/app-dscp.json", 0),
        "dcb -j dcbx": ("dcb/dcbx-firmware.json", 0),
    }
    assert judged(CHECK, answers).verdict.cause is FIRMWARE


def test_an_old_layout_does_not_tell(judged: Any) -> None:
    assert judged(CHECK, said("layout-classic-2017.txt")).verdict.kind is Kind.UNDECIDABLE


@pytest.mark.parametrize(("flow_control", "kind"), [("none", Kind.NOT_APPLICABLE)])
def test_a_lossy_fabric(judged: Any, flow_control: str, kind: Kind) -> None:
    verdict = judged(CHECK, said("dcbx-fw.txt"), flow_control=flow_control).verdict
    assert verdict.kind is kind


def test_unreadable(judged: Any) -> None:
    assert judged(CHECK, said("traceback-import.txt", 1)).verdict.status is Status.ERROR
