"""physical.gpu-driver"""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from checks.physical.gpu_driver import (
    CHECK,
    CUT_OFF,
    GUESTS,
    IN_JOB,
    INFOROM,
    LOST,
    MISMATCH,
    MISSING,
    MORE,
    NO_DRIVER,
    NO_GPU,
)
from commcheck.model import Accelerator, Cause, Kind, Machine, Status

LIST = {"nvidia-smi": ("nvidia-smi/nvlink-pcie-card.txt", 0)}  # two A10, the lines of -L


def machine(gpus: int) -> Machine:
    found = tuple(Accelerator(index, "nvidia") for index in range(gpus))
    return Machine("gpu-01", "gpu-roce", accelerators=found)


@pytest.mark.parametrize(
    ("on_pci", "declared", "status", "cause", "says"),
    [
        (2, None, Status.PASS, None, "2 GPUs: NVIDIA A10; their number is not declared"),
        (0, None, Status.PASS, None, "not declared"),
        (2, 2, Status.PASS, None, "2 GPUs: NVIDIA A10"),
        (8, 2, Status.PASS, None, "2 GPUs"),
        (8, None, Status.FAIL, MISSING, "2 GPUs, want 8: on PCI"),
        (2, 8, Status.FAIL, MISSING, "2 GPUs, want 8: the command line"),
        (2, 1, Status.WARN, MORE, "2 GPUs, want 1"),
    ],
)
def test_count(
    judged: Any, on_pci: int, declared: int | None, status: Status, cause: Cause | None, says: str
) -> None:
    verdict = judged(CHECK, LIST, machine=machine(on_pci), gpu_count=declared).verdict
    assert (verdict.status, verdict.cause) == (status, cause)
    assert says in verdict.reason
    assert verdict.measured == {"gpu_count": 2}


def test_what_vfio_holds_is_for_guests_and_not_lost(judged: Any) -> None:
    held = replace(machine(2), for_guests=("0000:d1:00.0", "0000:d2:00.0"))
    verdict = judged(CHECK, LIST, machine=held).verdict
    assert (verdict.status, verdict.cause) == (Status.WARN, GUESTS)
    assert verdict.reason == "2 GPUs; vfio-pci holds 2 for guests: 0000:d1:00.0, 0000:d2:00.0"
    assert judged(CHECK, LIST, machine=held, gpu_count=2).verdict.status is Status.PASS
    want = judged(CHECK, LIST, machine=held, gpu_count=4).verdict
    assert (want.status, want.cause) == (Status.FAIL, GUESTS)
    # A third one is lost in truth.
    assert judged(CHECK, LIST, machine=held, gpu_count=5).verdict.cause is MISSING
    lost = replace(held, accelerators=machine(3).accelerators)
    assert judged(CHECK, LIST, machine=lost).verdict.cause is MISSING
    none = {"nvidia-smi": ("nvidia-smi/no-devices.txt", 6)}
    given = judged(CHECK, none, machine=replace(held, accelerators=())).verdict
    assert given.kind is Kind.UNDECIDABLE
    assert "no GPU, and vfio-pci holds 2 for guests" in given.reason


def test_a_pod_is_asked_for_what_it_was_given(judged: Any) -> None:
    pod = replace(machine(4), in_container=True)
    verdict = judged(CHECK, LIST, machine=pod).verdict
    assert (verdict.cause, verdict.reason) == (MISSING, "2 GPUs, want 4: given to this container")


@pytest.mark.parametrize(
    ("name", "rc", "cause"),
    [
        ("driver-mismatch.txt", 18, MISMATCH),
        ("no-driver.txt", 9, NO_DRIVER),
        ("no-devices.txt", 6, NO_GPU),
        ("gpu-lost.txt", 15, LOST),
        ("gpu-lost.txt", 0, LOST),
    ],
)
def test_broken(judged: Any, name: str, rc: int, cause: Cause) -> None:
    answers = {"nvidia-smi": (f"nvidia-smi/{name}", rc)}
    verdict = judged(CHECK, answers, machine=machine(8)).verdict
    assert (verdict.status, verdict.cause) == (Status.FAIL, cause)


@pytest.mark.parametrize(
    ("text", "rc", "error"),
    [
        ("nvidia-smi/command-not-found.txt", 127, "CommandMissing"),
        ("Insufficient permissions\n", 4, "CommandFailed"),
        ("GPU 0: NVIDIA A10 (UUID: GPU-0000", 0, "ParseError"),
    ],
)
def test_what_cannot_be_read_is_no_fail(judged: Any, text: str, rc: int, error: str) -> None:
    verdict = judged(CHECK, {"nvidia-smi": (text, rc)}, machine=machine(8)).verdict
    assert (verdict.status, verdict.error) == (Status.ERROR, error)


def test_a_missing_gpu_is_named_where_pci_has_it(judged: Any) -> None:
    slots = ("0000:1b:00.0", "0000:43:00.0", "0000:d1:00.0")
    found = tuple(Accelerator(at, "nvidia", pci) for at, pci in enumerate(slots))
    query = (
        "index, name, pci.bus_id\n"
        "0, NVIDIA A10, 00000000:1B:00.0\n"
        "1, NVIDIA A10, 00000000:D1:00.0\n"
    )
    answers = {"nvidia-smi -L": LIST["nvidia-smi"], "nvidia-smi --query-gpu": (query, 0)}
    host = Machine("gpu-01", "gpu-roce", accelerators=found)
    verdict = judged(CHECK, answers, machine=host).verdict
    assert verdict.cause is MISSING
    assert verdict.reason == "2 GPUs, want 3: on PCI; on PCI without driver: 0000:43:00.0"


@pytest.mark.parametrize(
    "cgroup",
    [
        "0::/system.slice/slurmstepd.scope/job_4711/step_extern/user/task_special\n",
        "0::/system.slice/gpu-01_slurmstepd.scope/job_4711/step_0/user/task_0\n",
        "9:devices:/slurm/uid_1000/job_4711/step_0\n1:name=systemd:/user.slice/session-3.scope\n",
    ],
)
def test_a_job_of_slurm_sees_only_its_own(judged: Any, cgroup: str) -> None:
    answers = LIST | {"cat /proc/self/cgroup": (cgroup, 0)}
    verdict = judged(CHECK, answers, machine=machine(8), gpu_count=8).verdict
    assert (verdict.status, verdict.cause) == (Status.WARN, IN_JOB)
    assert verdict.remedies[0].command == "scontrol -d show job 4711"
    assert judged(CHECK, answers, machine=machine(2)).verdict.status is Status.PASS
    none = answers | {"nvidia-smi": ("nvidia-smi/no-devices.txt", 6)}
    assert judged(CHECK, none, machine=machine(8)).verdict.kind is Kind.UNDECIDABLE


def test_outside_of_jobs_a_missing_gpu_is_missing(judged: Any) -> None:
    for cgroup in ("0::/user.slice/user-0.slice/session-3.scope\n", "0::/\n", "garbage\n"):
        answers = LIST | {"cat /proc/self/cgroup": (cgroup, 0)}
        assert judged(CHECK, answers, machine=machine(8)).verdict.cause is MISSING


def test_a_corrupted_inforom_is_a_warning(judged: Any) -> None:
    text = "GPU 0: NVIDIA A10 (UUID: GPU-00000000-1111-2222-3333-444444444440)\n"
    said = f"{text}WARNING: infoROM is corrupted at gpu 0000:3B:00.0\n"
    verdict = judged(CHECK, {"nvidia-smi": (said, 0)}, machine=machine(1)).verdict
    assert (verdict.status, verdict.cause) == (Status.WARN, INFOROM)
    assert "0000:3b:00.0 of 1 GPU" in verdict.reason
    assert judged(CHECK, {"nvidia-smi": (said, 0)}, machine=machine(2)).verdict.cause is MISSING


def test_a_container_that_was_cut_off(judged: Any) -> None:
    said = {"nvidia-smi": ("Failed to initialize NVML: Unknown Error\n", 255)}
    pod = replace(machine(8), in_container=True)
    verdict = judged(CHECK, said, machine=pod).verdict
    assert (verdict.status, verdict.cause) == (Status.FAIL, CUT_OFF)
    assert judged(CHECK, said, machine=machine(8)).verdict.kind is Kind.UNDECIDABLE
