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

import pytest

from commcheck.demo.fault import known_faults
from commcheck.demo.persona import cast
from tests.demo.instant import climb
from tests.demo.test_faults import findings

PLATFORMS = ("h100-roce", "h200-ib", "ascend-910b")
NAMES = {"h100-roce": "roce", "h200-ib": "ib", "ascend-910b": "npu"}
FAULTS = {
    "roce-1": "pfc-off",
    "roce-3": "env-misspelt",
    "roce-4": "no-overlap",
    "ib-1": "no-subnet-manager",
    "ib-3": "xid-gsp",
    "ib-4": "tiny-buckets",
    "npu-1": "npu-pfc-prio3",
    "npu-3": "npu-env-wrong-tc",
    "npu-4": "no-overlap",
}
"""Over all layers, on each platform; the second host of each has none."""

CAUSES = {
    "roce-1": "pfc-off",
    "roce-3": "env-misspelt",
    "roce-4": "overlap-off",
    "ib-1": "ib-manager-missing",
    "ib-3": "xid-needs-reset",
    "ib-4": "bucket-size-unit",
    "npu-1": "npu-pfc-wrong-priority",
    "npu-3": "env-hccl-value",
    "npu-4": "overlap-off",
}
STRANGE = {
    "h100-roce": r"(?i)\bnpu|hccn|hccl|ascend|cann\b|subnet manager|opensm|pkey",
    "h200-ib": r"(?i)\bnpu|hccn|hccl|ascend|cann\b|\bPFC\b|DSCP|\bRoCE|mlnx_qos",
    "ascend-910b": r"(?i)\bGPUs?\b(?!-\d)|NVLink|mlx5|mlnx_qos|nvidia|NCCL|ethtool|subnet manager",
}
"""What nobody may read of a host of that platform."""


@pytest.mark.slow
def test_four_of_each_with_faults_in_each_layer(tmp_path: Path) -> None:
    kinds = [name for name in PLATFORMS for _ in range(4)]
    names = [f"{NAMES[kind]}-{at % 4 + 1}" for at, kind in enumerate(kinds)]
    kind = dict(zip(names, kinds, strict=True))
    hosts = [replace(host, name=name) for host, name in zip(cast(12, kinds), names, strict=True)]
    known = known_faults()
    states = [
        known[FAULTS[host.name]].change(host) if host.name in FAULTS else host for host in hosts
    ]
    assert climb(states, tmp_path) == 1
    (run,) = (each for each in tmp_path.glob("2*") if each.is_dir())
    results = json.loads((run / "results.json").read_text())
    verdicts: list[dict[str, Any]] = results["verdicts"]
    assert findings(verdicts) == {
        host: {(known[name].check, known[name].status)} for host, name in FAULTS.items()
    }
    # The diagnosis: each cause on its own hosts alone, with a remedy of their platform.
    assert {
        host: cause["cause"] for cause in results["causes"] for host in cause["hosts"]
    } == CAUSES
    for cause in results["causes"]:
        told = json.dumps([cause["reason"], [each["command"] for each in cause["remedies"]]])
        for host in cause["hosts"]:
            assert not re.search(STRANGE[kind[host]], told), told
    passed = defaultdict(set)
    for each in verdicts:
        host = each["host"]
        if each["kind"] in ("not-applicable", "not-permitted") or host not in kind:
            continue
        told = f"{each['check']} {each['reason']} {each['remedy'] or ''}"
        assert not re.search(STRANGE[kind[host]], told), (host, told)
        if each["status"] == "pass":
            passed[kind[host]].add(each["check"])
    # None passes for want of questions.
    above = {"library.env", "library.running-job", "application.buckets"}
    assert {"physical.pfc-enabled", "physical.roce-v2-gid", *above} <= passed["h100-roce"]
    assert {"physical.ib-subnet-manager", "physical.ib-pkey", *above} <= passed["h200-ib"]
    assert {"physical.npu-pfc", "physical.npu-tls-consistent", *above} <= passed["ascend-910b"]
    for line in (run / "summary.md").read_text().splitlines():
        of = {name for name in names if re.search(rf"\b{name}\b", line)}
        if len({kind[name] for name in of}) == 1:
            assert not re.search(STRANGE[kind[min(of)]], line), line


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


@pytest.mark.slow
def test_an_a3_whose_roce_is_not_cabled_is_asked_over_hccs(tmp_path: Path) -> None:
    """The real script: it finds another chip's virtual NIC, and pings it."""
    words = ("--hosts", "1", "--persona", "ascend-910c", "--fault", "npu-roce-unused@gpu-01")
    done = subprocess.run(
        [
            *(Path(sys.executable).parent / "commcheck", "demo", *words),
            *("-t", "physical.npu-link-up", "-t", "physical.npu-net-health", "--format", "json"),
        ],
        cwd=tmp_path,
        capture_output=True,
        text=True,
        check=False,
        timeout=60,
    )
    assert done.returncode == 0, done.stderr
    verdicts = json.loads(done.stdout)["verdicts"]
    assert findings(verdicts) == {"gpu-01": {("physical.npu-link-up", "warn")}}
    assert sum("HCCS reaches another NPU" in each["reason"] for each in verdicts) == 16
