"""physical.nvlink-active"""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from checks.physical.nvlink_active import CHECK, LOST, NONE, SLOW
from commcheck.model import Cause, Kind, Machine, Status

ONE = Machine("gpu-01", "gpu-roce")
ALL_INACTIVE = "NVML: Unable to retrieve NVLink information as all links are inActive\n"
LIST = {"nvidia-smi -L": ("nvidia-smi/nvlink-pcie-card.txt", 0)}
MIG = "  MIG 1g.10gb     Device  0: (UUID: MIG-00000000-1111-2222-3333-444444444440)\n"


def uuid(index: int) -> str:
    return f"(UUID: GPU-{index:08d}-1111-2222-3333-444444444444)"


def gpus(name: str, *links: str) -> dict[str, tuple[str, int]]:
    """One GPU for each text of words: a speed, or ``-`` for inactive."""
    lines = []
    for index, each in enumerate(links):
        lines.append(f"GPU {index}: {name} {uuid(index)}")
        for number, word in enumerate(each.split()):
            lines.append(f"\t Link {number}: " + ("<inactive>" if word == "-" else f"{word} GB/s"))
    return LIST | {"nvidia-smi nvlink": ("\n".join(lines) + "\n", 0)}


def recorded(name: str) -> dict[str, tuple[str, int]]:
    return LIST | {"nvidia-smi nvlink": (f"nvidia-smi/nvlink-{name}.txt", 0)}


@pytest.mark.parametrize("name", ["h100-good", "a100-good"])
def test_all_active(judged: Any, name: str) -> None:
    assert judged(CHECK, recorded(name), machine=ONE).verdict.status is Status.PASS


@pytest.mark.parametrize(
    ("name", "cause", "says"),
    [
        ("inactive", LOST, "NVLinks active: gpu2 16 of 18"),
        ("all-inactive", NONE, "NVLinks active: gpu0 0 of 18"),
    ],
)
def test_recorded_faults(judged: Any, name: str, cause: Cause, says: str) -> None:
    verdict = judged(CHECK, recorded(name), machine=ONE).verdict
    assert (verdict.status, verdict.cause, verdict.reason) == (Status.FAIL, cause, says)
    assert verdict.remedies[0].command == "systemctl status nvidia-fabricmanager"


def test_a_card_without_nvlink(judged: Any) -> None:
    verdict = judged(CHECK, recorded("pcie-card"), machine=ONE).verdict
    assert verdict.kind is Kind.NOT_APPLICABLE
    assert "NVIDIA A10" in verdict.reason
    wanted = judged(CHECK, recorded("pcie-card"), machine=ONE, nvlink_links=4).verdict
    assert wanted.cause is NONE


@pytest.mark.parametrize(
    ("name", "links", "speed", "status", "cause"),
    [
        ("NVIDIA H200", 18, "26.562", Status.PASS, None),
        ("NVIDIA H20", 18, "26.562", Status.PASS, None),
        ("NVIDIA H20-3e", 8, "26.562", Status.FAIL, LOST),
        ("NVIDIA H800", 8, "26.562", Status.PASS, None),
        ("NVIDIA A800-SXM4-80GB", 8, "25", Status.PASS, None),
        ("NVIDIA A100-SXM4-80GB", 8, "25", Status.FAIL, LOST),
        ("NVIDIA B200", 18, "53.125", Status.PASS, None),
        ("NVIDIA GB200", 18, "26.562", Status.FAIL, SLOW),
        ("NVIDIA B300 SXM6 AC", 17, "53.125", Status.FAIL, LOST),
        ("NVIDIA H100 80GB HBM3", 18, "12.5", Status.FAIL, SLOW),
        ("NVIDIA H100 NVL", 12, "26.562", Status.PASS, None),  # by bridge: not the table's 18
        ("NVIDIA Next", 6, "99", Status.PASS, None),
    ],
)
def test_by_name(
    judged: Any, name: str, links: int, speed: str, status: Status, cause: Cause | None
) -> None:
    said = gpus(name, *[" ".join([speed] * links)] * 2)
    verdict = judged(CHECK, said, machine=ONE).verdict
    assert (verdict.status, verdict.cause) == (status, cause)


@pytest.mark.parametrize(
    ("name", "links", "what"),
    [
        ("NVIDIA Next", ("9 9", "9 -"), Status.FAIL),  # fewer than its neighbour
        ("NVIDIA Next", ("9 -", "9 -"), Kind.UNDECIDABLE),  # all alike
        ("NVIDIA Next", ("- -", "- -"), Kind.UNDECIDABLE),
        ("NVIDIA H100 PCIe", ("9 9", "- -"), Kind.UNDECIDABLE),  # one without its bridge?
        ("NVIDIA A100-PCIE-40GB", ("9 -", "9 -"), Kind.UNDECIDABLE),
        ("NVIDIA A30", ("9 9", "- -"), Kind.UNDECIDABLE),
        ("NVIDIA A800 40GB Active", ("9 9", "- -"), Kind.UNDECIDABLE),
        ("NVIDIA RTX A6000", ("9 9", "- -"), Kind.UNDECIDABLE),
    ],
)
def test_names_that_do_not_tell(
    judged: Any, name: str, links: tuple[str, ...], what: object
) -> None:
    verdict = judged(CHECK, gpus(name, *links), machine=ONE).verdict
    assert what in (verdict.status, verdict.kind)


def test_the_inventory_decides(judged: Any) -> None:
    said = gpus("NVIDIA H100 PCIe", "9 9 -", "9 9 -")
    assert judged(CHECK, said, machine=ONE, nvlink_links=2).verdict.status is Status.PASS
    verdict = judged(CHECK, said, machine=ONE, nvlink_links=3).verdict
    assert (verdict.cause, verdict.reason.startswith("NVLinks active: gpu0 2 of 3")) == (LOST, True)
    none = judged(CHECK, recorded("all-inactive"), machine=ONE, nvlink_links=0).verdict
    assert none.kind is Kind.NOT_APPLICABLE


def test_a_guest_with_one_gpu_of_a_board(judged: Any) -> None:
    """Its host gives it no NVLink: NVIDIA's fabric manager guide, partitions of one GPU."""
    one = gpus("NVIDIA A100-SXM4-40GB", " ".join("-" * 12))
    text, rc = one["nvidia-smi nvlink"]
    unlisted = text.partition("\t")[0] + ALL_INACTIVE
    guest = replace(ONE, in_vm=True)
    for said in (text, unlisted):
        answers = LIST | {"nvidia-smi nvlink": (said, rc)}
        assert judged(CHECK, answers, machine=guest).verdict.kind is Kind.NOT_APPLICABLE
        assert judged(CHECK, answers, machine=ONE).verdict.cause is NONE
        assert judged(CHECK, answers, machine=guest, nvlink_links=12).verdict.cause is NONE
    some = gpus("NVIDIA A100-SXM4-40GB", " ".join(["25"] * 11 + ["-"]))
    assert judged(CHECK, some, machine=guest).verdict.cause is LOST
    two = gpus("NVIDIA A100-SXM4-40GB", *[" ".join("-" * 12)] * 2)
    assert judged(CHECK, two, machine=guest).verdict.cause is NONE


def test_mig_has_no_nvlink(judged: Any) -> None:
    split = {"nvidia-smi -L": (f"GPU 0: NVIDIA H100 {uuid(0)}\n{MIG}", 0)}
    verdict = judged(CHECK, recorded("inactive") | split, machine=ONE).verdict
    assert verdict.kind is Kind.NOT_APPLICABLE


@pytest.mark.parametrize(
    ("text", "rc", "error"),
    [
        ("nvidia-smi/command-not-found.txt", 127, "CommandMissing"),
        ("nvidia-smi/no-driver.txt", 9, "CommandFailed"),
        ("GPU 0: NVIDIA H100", 0, "ParseError"),
    ],
)
def test_unreadable(judged: Any, text: str, rc: int, error: str) -> None:
    verdict = judged(CHECK, LIST | {"nvidia-smi nvlink": (text, rc)}, machine=ONE).verdict
    assert (verdict.status, verdict.error) == (Status.ERROR, error)
