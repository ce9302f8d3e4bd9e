"""physical.fabric-manager"""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import pytest

from checks.physical.fabric_manager import (
    CHECK,
    NOT_DONE,
    NOT_RUNNING,
    OTHER_RELEASE,
    RECOVERING,
    STOPPED,
    UNHEALTHY,
    UNTOLD,
)
from commcheck.model import Cause, Kind, Machine, Status

RECORDED = Path(__file__).parents[2] / "recorded" / "gpu-health"
ONE = Machine("gpu-01", "gpu-roce")
OLD = ("gpu-health/fabric-old-driver.txt", 2)
NO_FOLDER = ("find: '/proc/driver/nvidia-nvswitch/devices': No such file or directory\n", 1)
SWITCHES = ("host-health/nvswitches.txt", 0)
ACTIVE = ("host-health/fabric-manager-active.txt", 0)
INACTIVE = ("inactive\n", 0)
FAILED = ("failed\n", 0)


def said(
    fabric: tuple[str, int],
    unit: tuple[str, int],
    switches: tuple[str, int] = SWITCHES,
    driver: str = "550.54.15",
) -> dict[str, tuple[str, int]]:
    line = f"NVRM version: NVIDIA UNIX x86_64 Kernel Module  {driver}  Tue Mar  5 22:09:14 UTC\n"
    return {
        "nvidia-smi --query-gpu": fabric,
        "systemctl is-active": unit,
        "nv-fabricmanager": ("host-health/fabric-manager-version.txt", 0),
        "cat /proc/driver/nvidia/version": (line, 0),
        "find /proc/driver/nvidia-nvswitch": switches,
    }


def of(name: str) -> tuple[str, int]:
    return (f"gpu-health/fabric-{name}.txt", 0)


@pytest.mark.parametrize(
    ("answers", "status", "cause", "says"),
    [
        (said(of("h100"), ACTIVE), Status.PASS, None, "completed on 8 GPUs"),
        (said(of("h100"), INACTIVE), Status.PASS, None, "fabric manager inactive"),
        (said(of("h100"), FAILED), Status.WARN, STOPPED, "failed since"),
        (said(of("in-progress"), ACTIVE), Status.FAIL, NOT_DONE, "gpu7 In Progress"),
        (said(of("insufficient"), ACTIVE), Status.FAIL, NOT_DONE, "gpu3 Completed, Insuff"),
        (said(of("none"), ACTIVE), Status.PASS, None, "the fabric manager runs"),
        (said(OLD, ACTIVE), Status.PASS, None, "the fabric manager runs"),
        (said(OLD, INACTIVE), Status.FAIL, NOT_RUNNING, "4 NVSwitches"),
        (said(OLD, FAILED), Status.FAIL, NOT_RUNNING, "failed, want it active"),
        (said(OLD, ACTIVE, driver="550.90.07"), Status.WARN, OTHER_RELEASE, "want them equal"),
        (said(of("h100"), ACTIVE, driver="550.90.07"), Status.WARN, OTHER_RELEASE, "550.54.15"),
    ],
)
def test_with_switches(
    judged: Any,
    answers: dict[str, tuple[str, int]],
    status: Status,
    cause: Cause | None,
    says: str,
) -> None:
    verdict = judged(CHECK, answers, machine=ONE).verdict
    assert (verdict.status, verdict.cause) == (status, cause)
    assert says in verdict.reason


HEALTHY = (RECORDED / "q-gb300-healthy.txt").read_text()


def ill(key: str, word: str, summary: str = "Unhealthy") -> str:
    """Healthy, but for one line of the last GPU, and its summary."""
    head, gpu, tail = HEALTHY.rpartition("\nGPU ")
    for name, value in ((key, word), ("Summary", summary)):
        tail, found = re.subn(rf"( {name} +: ).*", rf"\g<1>{value}", tail)
        assert found == 1
    return f"{head}{gpu}{tail}"


@pytest.mark.parametrize(
    ("text", "status", "cause", "says"),
    [
        (HEALTHY, Status.PASS, None, "completed on 8 GPUs, all healthy, fabric manager inactive"),
        ("gpu-health/q-b200-untold.txt", Status.PASS, None, "completed on 8 GPUs, fabric manager"),
        ("gpu-health/q-gb300-degraded.txt", Status.FAIL, UNHEALTHY,
         "NVLink fabric: gpu2 Summary: Limited Capacity; Bandwidth: Degraded"),
        (ill("Route Unhealthy", "True"), Status.FAIL, UNHEALTHY, "gpu3 Summary: Unhealthy; Route"),
        (ill("Route Unhealthy", "GPU requires reset"), Status.FAIL, UNHEALTHY, "requires reset"),
        (ill("Incorrect Configuration", "Insufficient Nvlink Resources"), Status.FAIL, UNHEALTHY,
         "Incorrect Configuration: Insufficient Nvlink Resources"),
        (ill("Bandwidth", "Full"), Status.FAIL, UNHEALTHY, "gpu3 Summary: Unhealthy"),
        (ill("Access Timeout Recovery", "True"), Status.WARN, RECOVERING, "Recovery: True"),
        (ill("Route Recovery in progress", "True"), Status.WARN, RECOVERING, "progress: True"),
        (ill("Bandwidth", "N/A", "N/A"), Status.PASS, None, "all healthy"),
        ("cut short", Status.PASS, None, "completed on 8 GPUs, fabric manager inactive"),
    ],
)  # fmt: skip
def test_health(judged: Any, text: str, status: Status, cause: Cause | None, says: str) -> None:
    answers = said(of("h100"), INACTIVE) | {"nvidia-smi -q": (text, 0)}
    verdict = judged(CHECK, answers, machine=ONE).verdict
    assert (verdict.status, verdict.cause) == (status, cause)
    assert says in verdict.reason


def test_a_rack_without_its_fabric(judged: Any) -> None:
    gpus = "".join(
        f"GPU {at}: NVIDIA GB200 (UUID: GPU-00000000-1111-2222-3333-44444444444{at})\n"
        for at in range(4)
    )
    answers = said(of("none"), INACTIVE, NO_FOLDER) | {"nvidia-smi -L": (gpus, 0)}
    verdict = judged(CHECK, answers, machine=ONE).verdict
    assert (verdict.status, verdict.cause) == (Status.WARN, UNTOLD)
    pairs = "".join(
        f"GPU{one}\t" + "\t".join(" X " if one == other else "NV{0}" for other in range(4)) + "\n"
        for one in range(4)
    )
    topo = f"\tGPU0\tGPU1\tGPU2\tGPU3\n{pairs}\nLegend:\n"
    rack = answers | {"nvidia-smi topo": (topo.format(18), 0)}
    assert judged(CHECK, rack, machine=ONE).verdict.cause is UNTOLD
    nvl4 = answers | {"nvidia-smi topo": (topo.format(6), 0)}
    assert judged(CHECK, nvl4, machine=ONE).verdict.kind is Kind.NOT_APPLICABLE
    guest = Machine("gpu-01", "gpu-roce", in_vm=True)
    assert judged(CHECK, answers, machine=guest).verdict.kind is Kind.NOT_APPLICABLE
    hgx = answers | {"nvidia-smi -L": (gpus.replace("GB200", "L40S"), 0)}
    assert judged(CHECK, hgx, machine=ONE).verdict.kind is Kind.NOT_APPLICABLE


def test_one_gpu_that_the_fabric_left_out(judged: Any) -> None:
    fabric = (RECORDED / "fabric-h100.txt").read_text()
    gpus = "".join(
        f"GPU {at}: NVIDIA H100 80GB HBM3 (UUID: GPU-00000000-1111-2222-3333-44444444444{at})\n"
        for at in range(8)
    )
    alone = re.sub(r"(?m)^5, .*$", "5, [N/A], [N/A], 0 MiB", fabric)
    answers = said((alone, 0), ACTIVE) | {"nvidia-smi -L": (gpus, 0)}
    verdict = judged(CHECK, answers, machine=ONE).verdict
    assert (verdict.status, verdict.cause) == (Status.WARN, UNTOLD)
    assert verdict.reason.endswith("completed on 7 GPUs, and gpu5 tells of none")
    other = gpus.replace("GPU 5: NVIDIA H100 80GB HBM3", "GPU 5: NVIDIA T400")
    display = answers | {"nvidia-smi -L": (other, 0)}
    assert judged(CHECK, display, machine=ONE).verdict.status is Status.PASS


def test_without_switches_none_is_needed(judged: Any) -> None:
    verdict = judged(CHECK, said(of("none"), INACTIVE, NO_FOLDER), machine=ONE).verdict
    assert verdict.kind is Kind.NOT_APPLICABLE


@pytest.mark.parametrize(
    ("unit", "machine"),
    [
        (INACTIVE, Machine("gpu-01", "gpu-roce", in_container=True)),
        (("sh: systemctl: not found\n", 127), ONE),
    ],
)
def test_who_manages_it_cannot_always_be_seen(
    judged: Any, unit: tuple[str, int], machine: Machine
) -> None:
    verdict = judged(CHECK, said(OLD, unit), machine=machine).verdict
    assert verdict.kind is Kind.UNDECIDABLE


def test_nothing_read_is_undecided(judged: Any) -> None:
    assert judged(CHECK, {}, machine=ONE).verdict.kind is Kind.UNDECIDABLE
