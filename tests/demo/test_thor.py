"""Broadcom hosts: what ``niccli`` says is the recording again, and it is asked where dcb is not."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from commcheck.demo.fault import known_faults
from commcheck.demo.persona import cast
from commcheck.demo.tools.niccli import listed, qos
from tests.e2e.test_loads import climb

RECORDED = Path(__file__).parents[1] / "recorded" / "niccli"
HOST = cast(1, ["h100-thor"])[0]


def test_niccli() -> None:
    nic = replace(HOST.nics[0], firmware="231.2.63.0")
    assert qos(nic.qos) == (RECORDED / "get-qos-good.txt").read_text()
    off = replace(nic.qos, pfc=frozenset())
    assert qos(off) == (RECORDED / "get-qos-pfc-none.txt").read_text()
    rows = [
        (f"84:16:0A:3E:0E:2{n}", replace(nic, pci=pci))
        for n, pci in enumerate(("0000:06:00.0", "0000:26:00.0"))
    ]
    assert listed(rows) == (RECORDED / "list.txt").read_text()


@pytest.mark.slow
def test_it_is_asked_where_dcb_is_not(tmp_path: Path) -> None:
    """The real script over SSH, as root by sudo: one port of two hosts has PFC off."""
    hosts = [replace(host, missing=host.missing | {"dcb"}) for host in cast(2, ["h100-thor"])]
    hosts[1] = known_faults()["pfc-off"].change(hosts[1])
    book = tmp_path / "looks.yaml"
    book.write_text("name: looks\nplays: [{layer: physical, checks: [physical.pfc-enabled]}]\n")
    verdicts = climb(hosts, book, tmp_path / "reports")
    found = [each for each in verdicts if each["check"] == "physical.pfc-enabled"]
    wrong = [each for each in found if each["status"] != "pass"]
    assert {each["host"] for each in found} == {"gpu-01", "gpu-02"}
    assert {(each["host"], each["cause"]) for each in wrong} == {("gpu-02", "pfc-off")}
    assert all("niccli get_qos" in str(each["evidence"]) for each in wrong)
