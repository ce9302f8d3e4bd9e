"""physical.pcie-acs"""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from checks.physical.pcie_acs import AT_ROOT, CHECK, REDIRECTS
from commcheck.model import Kind, Machine, Rail, Status

RECORDED = Path(__file__).parents[2] / "recorded" / "lspci"
ON = (RECORDED / "switch-acs-on.txt").read_text()


def said(text: str, modules: str = "modules/lsmod-peermem.txt") -> dict[str, tuple[str, int]]:
    return {"lspci -D -vvv -d ::0604": (text, 0), "lsmod": (modules, 0)}


def test_redirects(judged: Any) -> None:
    verdict = judged(CHECK, said(ON)).verdict
    assert (verdict.status, verdict.cause) == (Status.FAIL, REDIRECTS)
    assert "0000:80:01.0" in verdict.reason
    assert verdict.remedies[1].command == "setpci -s 0000:80:01.0 ECAP_ACS+0x6.w=0000"


@pytest.mark.parametrize("name", ["switch-acs-off.txt", "switch-acs-srcvalid-only.txt"])
def test_does_not(judged: Any, name: str) -> None:
    assert judged(CHECK, said(f"lspci/{name}")).verdict.status is Status.PASS


def test_at_a_root_port_it_is_a_warning(judged: Any) -> None:
    root = ON.replace("Downstream Port (Slot-)", "Root Port (Slot+)")
    verdict = judged(CHECK, said(root)).verdict
    assert (verdict.status, verdict.cause) == (Status.WARN, AT_ROOT)


def test_a_bridge_above_nothing_of_ours_does_not_count(judged: Any) -> None:
    other = ON.replace("80:01.0", "40:01.0").replace(
        "secondary=81, subordinate=81", "secondary=41, subordinate=4f"
    )
    off = (RECORDED / "switch-acs-off.txt").read_text()
    assert judged(CHECK, said(other + off)).verdict.status is Status.PASS
    assert judged(CHECK, said(other)).verdict.kind is Kind.UNDECIDABLE


def test_hosts_for_guests_and_guests_are_not_judged(judged: Any, rail: Rail) -> None:
    vfio = "vfio_pci 16384 1 - Live 0x0\n"
    assert judged(CHECK, said(ON, vfio)).verdict.kind is Kind.NOT_APPLICABLE
    guest = Machine("gpu-01", "gpu-roce", in_vm=True, rails=(rail,))
    assert judged(CHECK, said(ON), machine=guest).verdict.kind is Kind.NOT_APPLICABLE


@pytest.mark.parametrize("name", ["NVIDIA GB300", "NVIDIA GB200", "NVIDIA GH200 480GB"])
def test_on_grace_boards_redirection_is_wanted(judged: Any, name: str) -> None:
    gpu = f"GPU 0: {name} (UUID: GPU-00000001-1111-2222-3333-444444444440)\n"
    verdict = judged(CHECK, said(ON) | {"nvidia-smi -L": (gpu, 0)}).verdict
    assert verdict.kind is Kind.NOT_APPLICABLE
    assert "rdma_topo check" in verdict.reason


def test_without_root_it_is_undecided(judged: Any, rail: Rail) -> None:
    cut = ON[: ON.index("\tCapabilities")] + "\tCapabilities: <access denied>\n"
    assert judged(CHECK, said(cut)).verdict.kind is Kind.UNDECIDABLE
    machine = Machine("gpu-01", "gpu-roce", rails=(replace(rail, pci=None),))
    assert judged(CHECK, said(ON), machine=machine).verdict.kind is Kind.UNDECIDABLE


def test_unreadable(judged: Any) -> None:
    assert judged(CHECK, said("garbage\n")).verdict.status is Status.ERROR
