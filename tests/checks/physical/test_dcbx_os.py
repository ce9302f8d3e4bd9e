"""physical.dcbx-os"""

from __future__ import annotations

import subprocess
from pathlib import Path
from typing import Any

import pytest

from checks.physical.dcbx_os import CHECK, FIRMWARE, HOST
from commcheck.formats.mlxconfig import MLXCONFIG_DCBX
from commcheck.model import Kind, Status
from tests.checks.conftest import RAIL
from tests.sshd import write_tool


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


@pytest.mark.parametrize(
    ("settings", "status"),
    [("LLDP_NB_DCBX_P1  False(0)", Status.WARN), ("LLDP_NB_DCBX_P1  True(1)", Status.FAIL)],
)
def test_firmware_that_hears_no_switch_overwrites_nothing(
    judged: Any, settings: str, status: Status
) -> None:
    text = f"Device type: ConnectX7\nDevice: 81:00.0\nConfigurations: Next Boot\n    {settings}\n"
    answers = {**said("dcbx-fw.txt"), "mlxconfig -d 0000:81:00.0 q": (text, 0)}
    verdict = judged(CHECK, answers).verdict
    assert (verdict.status, verdict.cause) == (status, FIRMWARE)
    assert ("LLDP_NB_DCBX_P1 is False" in verdict.reason) is (status is Status.WARN)


@pytest.mark.parametrize(
    ("dcb", "mlnx_qos", "asked"),
    [
        ('echo \'{"host":true,"ieee":true}\'', "exit 1", False),
        ("echo '{\"ieee\":true}'", "exit 1", True),
        ("exit 1", "echo 'DCBX mode: Firmware controlled'", True),
        ("exit 1", "echo 'DCBX mode: OS controlled'", False),
    ],
)
def test_the_firmware_is_asked_only_where_it_rules(
    tmp_path: Path, dcb: str, mlnx_qos: str, asked: bool
) -> None:
    for tool, script in {"dcb": dcb, "mlnx_qos": mlnx_qos, "mstconfig": 'echo "$*"'}.items():
        write_tool(tmp_path / tool, script)
    done = subprocess.run(
        MLXCONFIG_DCBX.commands[0].on(RAIL).argv,
        env={"PATH": f"{tmp_path}:/usr/bin:/bin"},
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.stdout == ("-d 0000:81:00.0 q\n" if asked else "")
    assert done.returncode == (0 if asked else 1)


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
