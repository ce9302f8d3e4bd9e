"""Fleets of several platforms in one run: each host is told of in the words of its own platform."""

from __future__ import annotations

import json
import re
import subprocess
import sys
from collections import defaultdict
from dataclasses import replace
from pathlib import Path
from typing import Any

from commcheck.demo.fault import known_faults
from commcheck.demo.persona import cast
from tests.demo.instant import climb
from tests.demo.test_faults import findings

PLATFORMS = ("h100-roce", "h200-ib", "ascend-910b")
FAULTS = {"roce-1": "pfc-off", "ib-1": "no-subnet-manager", "npu-1": "npu-pfc-prio3"}
STRANGE = {
    "h100-roce": r"(?i)\bnpu|hccn|hccl|ascend|subnet manager|opensm|pkey",
    "h200-ib": r"(?i)\bnpu|hccn|hccl|ascend|\bPFC\b|DSCP|\bRoCE|mlnx_qos",
    "ascend-910b": r"(?i)\bGPU|NVLink|mlx5|mlnx_qos|nvidia|NCCL|ethtool|subnet manager",
}
"""What nobody may read of a host of that platform."""


def test_four_of_each_with_a_fault_in_each(tmp_path: Path) -> None:
    names = [f"{name}-{number}" for number in range(1, 5) for name in ("roce", "ib", "npu")]
    made = zip(cast(12, PLATFORMS), names, strict=True)
    hosts = [replace(host, name=name) for host, name in made]
    kind = {name: PLATFORMS[at % 3] for at, name in enumerate(names)}
    known = known_faults()
    broken = [known[FAULTS[each.name]].change(each) for each in hosts[:3]]
    assert climb([*broken, *hosts[3:]], tmp_path) == 1
    (run,) = (each for each in tmp_path.glob("2*") if each.is_dir())
    results = json.loads((run / "results.json").read_text())
    verdicts: list[dict[str, Any]] = results["verdicts"]
    assert findings(verdicts) == {
        host: {(known[name].check, "fail")} for host, name in FAULTS.items()
    }
    # The diagnosis: three causes, each of its own host alone, with a remedy of its platform.
    assert {cause["hosts"][0]: cause["cause"] for cause in results["causes"]} == {
        "roce-1": "pfc-off",
        "ib-1": "ib-manager-missing",
        "npu-1": "npu-pfc-wrong-priority",
    }
    for cause in results["causes"]:
        (host,) = cause["hosts"]
        told = json.dumps([cause["reason"], [each["command"] for each in cause["remedies"]]])
        assert not re.search(STRANGE[kind[host]], told), told
    passed = defaultdict(set)
    for each in verdicts:
        host = each["host"]
        if each["kind"] == "not-applicable" or host not in kind:
            continue
        told = f"{each['check']} {each['reason']} {each['remedy'] or ''}"
        assert not re.search(STRANGE[kind[host]], told), (host, told)
        if each["status"] == "pass":
            passed[kind[host]].add(each["check"])
    # None passes for want of questions.
    assert {"physical.pfc-enabled", "physical.roce-v2-gid"} <= passed["h100-roce"]
    assert {"physical.ib-subnet-manager", "physical.ib-pkey"} <= passed["h200-ib"]
    assert {"physical.npu-pfc", "physical.npu-tls-consistent"} <= passed["ascend-910b"]


def test_npus_are_asked_over_ssh(tmp_path: Path) -> None:
    """The real script on a real way, as root by sudo."""
    words = (
        "--hosts",
        "1",
        "--persona",
        "ascend-910b",
        "--fault",
        "npu-link-down@gpu-01",
        "-t",
        "physical.npu-*",
    )
    done = subprocess.run(
        [Path(sys.executable).parent / "commcheck", "demo", *words, "--format", "json"],
        cwd=tmp_path,
        capture_output=True,
        text=True,
        check=False,
        timeout=60,
    )
    assert done.returncode == 1, done.stderr
    verdicts = json.loads(done.stdout)["verdicts"]
    assert findings(verdicts) == {"gpu-01": {("physical.npu-link-up", "fail")}}
    (found,) = (each for each in verdicts if each["status"] == "fail")
    assert found["subject"] == "gpu-01/npu5"
    assert found["reason"] == "npu5 is down, want up; no light on lane 0, 1, 2, 3"
    assert "once: sudo hccn_tool -i N -link -g" in found["evidence"]
