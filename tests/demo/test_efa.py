"""The rendered answers of EFA's tools against the recordings: they are the recording again."""

from __future__ import annotations

from pathlib import Path

from commcheck.demo.efa import EfaState
from commcheck.demo.parts import answers
from commcheck.demo.persona import cast
from commcheck.demo.state import HostState
from commcheck.demo.sysfs.efa import entries
from commcheck.demo.tools.fi_info import render

RECORDED = Path(__file__).parents[1] / "recorded" / "efa"


def said(host: HostState) -> tuple[str, int]:
    return next((each.stdout, each.rc) for each in answers(host) if each.argv[0] == "fi_info")


def test_fi_info() -> None:
    devices = [EfaState(f"rdmap{bus}s0", "", "", "") for bus in range(79, 83)]
    assert "".join(map(render, devices)) == (RECORDED / "fi_info-good.txt").read_text()
    (other,) = cast(1, ["h100-roce"])
    assert said(other) == ((RECORDED / "fi_info-none.txt").read_text(), 61)


def test_an_instance_has_four_devices_beside_each_gpu() -> None:
    (host,) = cast(1, ["h100-efa"])
    assert len(host.efas) == 4 * len(host.gpus) == 32
    assert len({efa.pci for efa in host.efas} | {gpu.pci for gpu in host.gpus}) == 40
    assert sum(each.path.endswith("/rx_drops") for each in entries(host)) == 32
