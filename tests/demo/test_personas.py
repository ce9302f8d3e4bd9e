"""One healthy host of each generation: nothing is found on any, and each check says what it does.

Healthy is what the reference guides of the vendors call so: another NIC, another driver, a guest or
a lossy fabric is none of it a fault.
"""

from __future__ import annotations

import json
import re
from collections import defaultdict
from pathlib import Path

import pytest

from commcheck.check import AnyCheck
from commcheck.demo.fault import known_faults
from commcheck.demo.persona import cast, known_personas
from commcheck.discover import discover
from commcheck.model import Layer
from tests.demo.instant import climb

QOS = {
    f"physical.{name}"
    for name in (
        *("pfc-enabled", "pfc-only-expected", "roce-trust-dscp", "roce-dscp-map", "dcbx-os"),
        *("pause-global-off", "pause-storm", "qos-ratelimit", "roce-ecn", "roce-tclass"),
        *("roce-traffic-on-pfc-prio", "switch-pfc"),
    )
}
PORT = QOS | {
    f"physical.{name}"
    for name in (
        *("nic-fec", "nic-link-flaps", "nic-rx-discards", "nic-speed", "nic-symbol-errors"),
        *("optics-power", "rail-switch", "nic-ber", "pcie-errors", "pcie-link", "pcie-mrrs"),
        "rdma-rate",
    )
}
OLD_DRIVER = {"physical.gpu-confidential": "older than confidential computing"}
NOT_ASKED: dict[str, dict[str, str]] = {
    "a100-roce": OLD_DRIVER,
    "a800-roce": OLD_DRIVER,
    "b200-roce": {},
    "h100-roce": {},
    "h100-bluefield3": {},
    "h100-bluefield3-dpu": {
        **dict.fromkeys(QOS, "BlueField in DPU mode: read this on its Arm side"),
        "physical.rail-switch": "no switch was heard",
    },
    "h100-lossy": dict.fromkeys(
        (QOS - {f"physical.{name}" for name in (
            "roce-trust-dscp", "roce-dscp-map", "qos-ratelimit", "roce-ecn", "roce-tclass"
        )}) | {"physical.lldpad-running"},
        "flow control is none",
    ),
    "h100-bond": {},
    "h100-thor": {
        "physical.cma-roce-mode": "the kernel's own are v2",
        "physical.nic-ber": "driven by bnxt_en",
        "physical.qos-ratelimit": "driven by bnxt_en",
        "physical.roce-ecn": "shows no ECN settings",
    },
    "h100-vm": {
        **dict.fromkeys(PORT, "virtual function: read this on the host that owns the port"),
        "physical.iommu-mode": "a guest has its host's IOMMU",
        "physical.numa-affinity": "a guest has the NUMA nodes that its host gives it",
        "physical.pcie-acs": "a guest does not see the real bridges",
    },
    "h100-efa": {
        "physical.iommu-mode": "a guest has its host's IOMMU",
        "physical.numa-affinity": "a guest has the NUMA nodes that its host gives it",
        "physical.pcie-acs": "a guest does not see the real bridges",
    },
    "h100-tcp": {
        "physical.iommu-mode": "a guest has its host's IOMMU",
        "physical.numa-affinity": "a guest has the NUMA nodes that its host gives it",
        "physical.pcie-acs": "a guest does not see the real bridges",
    },
    "h100-ib": {},
    "h200-ib": {},
}  # fmt: skip
"""Checks that do not apply to hosts of a persona, and the words by which they say why."""

PLATFORM = {
    "h100-efa": "gpu-efa",
    "h100-tcp": "gpu-tcp",
    "h100-ib": "gpu-ib",
    "h200-ib": "gpu-ib",
}

NOBODY = {"physical.roce-gid-index": "NCCL picks one itself"}
"""What applies where an inventory or a host sets more than any of these."""


def is_of(check: AnyCheck, platform: str) -> bool:
    return check.layer is Layer.PHYSICAL and not check.effects and platform in check.platforms


def test_faults_that_need_a_persona_meet_on_one_host() -> None:
    faults = known_faults()
    (npus,) = cast(1, ["ascend-910b"])
    for name in ("npu-link-down", "npu-ip-lost"):
        npus = faults[name].change(npus)
    assert [npu.number for npu in npus.npus if not npu.link_up] == [5]
    assert [npu.number for npu in npus.npus if npu.address is None] == [3]
    (supernode,) = cast(1, ["ascend-910c"])
    assert len(faults["npu-tls-on"].change(supernode).npus) == 16
    (amazon,) = cast(1, ["h100-efa"])
    for name in ("efa-no-provider", "efa-retransmits"):
        amazon = faults[name].change(amazon)
    assert len(amazon.efas) == 32
    assert not any(efa.opened for efa in amazon.efas)
    (infiniband,) = cast(1, ["h100-ib"])
    other = faults["ib-other-fabric"].change(infiniband)
    assert other.declared == infiniband.declared  # its peers are still its peers


@pytest.mark.slow
def test_each_generation_is_healthy_and_each_check_says_what_it_does(tmp_path: Path) -> None:
    assert NOT_ASKED.keys() == {name for name in known_personas() if not name.startswith("ascend")}
    assert climb(cast(len(NOT_ASKED), list(NOT_ASKED)), tmp_path) == 0
    (run,) = (each for each in tmp_path.glob("2*") if each.is_dir())
    verdicts = json.loads((run / "results.json").read_text())["verdicts"]
    said: dict[str, dict[str, list[tuple[str, str, str]]]] = defaultdict(lambda: defaultdict(list))
    for each in verdicts:
        said[each["host"]][each["check"]].append((each["status"], each["kind"], each["reason"]))
    checks = [one.check for one in discover(cwd=tmp_path)]
    for number, (name, reasons) in enumerate(NOT_ASKED.items(), start=1):
        of_host = said[f"gpu-{number:02d}"]
        why = {**NOBODY, **reasons}
        if "bluefield" not in name:
            why["physical.bluefield-mode"] = "is no BlueField"
        elif "dpu" in name:
            why["physical.bluefield-mode"] = "in DPU mode, as declared"
        for check in checks:
            if not is_of(check, PLATFORM.get(name, "gpu-roce")):
                continue
            for status, kind, reason in of_host[check.id]:
                if check.peers:
                    assert re.search("fewer than 3 peers", reason), (name, check.id, reason)
                elif check.id in why:
                    assert kind == "not-applicable", (name, check.id, reason)
                    assert why[check.id] in reason, (name, check.id, reason)
                else:
                    assert status == "pass", (name, check.id, reason)


def test_of_a_bond_each_port_is_judged(tmp_path: Path) -> None:
    (host,) = cast(1, ["h100-bond"])
    broken = known_faults()["pfc-off"].change(host)
    assert climb([broken], tmp_path) == 1
    (run,) = (each for each in tmp_path.glob("2*") if each.is_dir())
    told = {
        (each["check"], each["subject"].partition("/")[2]): (each["status"], each["kind"])
        for each in json.loads((run / "results.json").read_text())["verdicts"]
    }
    for port in ("ens1f0np0", "ens1f1np1"):
        assert told["physical.pfc-enabled", f"mlx5_bond_0:{port}"] == ("fail", "")
        assert told["physical.nic-speed", f"mlx5_bond_0:{port}"][0] == "pass"
    assert told["physical.nic-mtu", "mlx5_bond_0"][0] == "pass"
    assert told["physical.roce-congestion", "mlx5_bond_0"][1] == "blocked"
