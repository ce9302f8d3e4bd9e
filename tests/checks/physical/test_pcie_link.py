"""physical.pcie-link"""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from checks.physical.pcie_link import CHECK, LANES, SLOT, SPEED
from commcheck.model import Cause, Kind, Machine, Rail, Status

PASS, FAIL = Status.PASS, Status.FAIL


def link(now: str, card: str, slot: str = "", rate: int = 400) -> dict[str, tuple[str, int]]:
    """What grep says; ``"32x16"`` is 32 GT/s and 16 lanes."""
    device = "/sys/class/infiniband/mlx5_0/device"
    places = {f"{device}/current": now, f"{device}/max": card, f"{device}/../max": slot}
    lines = [f"/sys/class/infiniband/mlx5_0/ports/1/rate:{rate} Gb/sec (4X NDR)"]
    for place, each in places.items():
        if each:
            speed, _, width = each.partition("x")
            lines += [f"{place}_link_speed:{speed} GT/s PCIe", f"{place}_link_width:{width}"]
    return {"grep": ("\n".join(lines) + "\n", 0)}


@pytest.mark.parametrize(
    ("name", "status", "cause"),
    [
        ("pcie-link-good.txt", PASS, None),
        ("pcie-link-old-kernel.txt", PASS, None),
        ("pcie-link-width-8.txt", FAIL, LANES),
        ("pcie-link-pci-path.txt", FAIL, LANES),
    ],
)
def test_recorded(judged: Any, name: str, status: Status, cause: Cause | None) -> None:
    verdict = judged(CHECK, {"grep": (f"sysfs/{name}", 0)}).verdict
    assert (verdict.status, verdict.cause) == (status, cause)


@pytest.mark.parametrize(
    ("now", "card", "slot", "rate", "status", "cause"),
    [
        ("8.0x16", "8.0x16", "", 100, PASS, None),
        ("16.0x16", "32.0x16", "16.0x16", 200, PASS, None),  # a ConnectX-7 at 200G in Gen4
        ("16.0x16", "32.0x16", "16.0x16", 400, FAIL, SLOT),
        ("16.0x16", "32.0x16", "32.0x16", 400, FAIL, SPEED),
        ("16.0x16", "32.0x16", "", 400, FAIL, SPEED),
        ("32.0x16", "64.0x16", "32.0x16", 400, PASS, None),  # a ConnectX-8 in Gen5
        ("32.0x16", "64.0x16", "32.0x16", 800, FAIL, SLOT),
        ("64.0x16", "64.0x16", "64.0x16", 800, PASS, None),
        ("32.0x8", "32.0x16", "32.0x16", 200, FAIL, LANES),  # enough, and yet a fault
        ("32.0x8", "32.0x16", "32.0x8", 200, PASS, None),  # the slot is wired so
        ("32.0x8", "32.0x16", "32.0x8", 400, FAIL, SLOT),
        ("5.0x16", "5.0x16", "", 50, PASS, None),
        ("5.0x16", "5.0x16", "", 60, FAIL, SLOT),
    ],
)
def test_lanes_and_bandwidth(
    judged: Any, now: str, card: str, slot: str, rate: int, status: Status, cause: Cause | None
) -> None:
    verdict = judged(CHECK, link(now, card, slot, rate)).verdict
    assert (verdict.status, verdict.cause) == (status, cause)


@pytest.mark.parametrize(
    ("each", "usable"),
    [("8x16", 110), ("16x16", 220), ("32x16", 440), ("32x8", 220), ("64x16", 880)],
)
def test_usable(judged: Any, each: str, usable: int) -> None:
    verdict = judged(CHECK, link(each, each, each, 100)).verdict
    assert verdict.measured["usable_gbits"] == pytest.approx(usable, abs=1)


def test_the_declared_rate_counts_also_while_the_port_is_slow_or_down(
    judged: Any, rail: Rail
) -> None:
    slow = link("16.0x16", "32.0x16", "32.0x16", 100)
    assert judged(CHECK, slow, line_rate_gbits=400).verdict.cause is SPEED
    machine = Machine("gpu-01", "gpu-roce", rails=(replace(rail, state="DOWN"),))
    down = judged(CHECK, slow, machine=machine).verdict
    assert (down.status, down.reason[-17:]) == (PASS, "rate is not known")
    assert judged(CHECK, slow, machine=machine, line_rate_gbits=400).verdict.cause is SPEED


def test_a_note_where_the_card_could_do_more(judged: Any) -> None:
    verdict = judged(CHECK, link("32.0x8", "64.0x16", "32.0x8", 200)).verdict
    assert verdict.reason.endswith("enough for 200 Gb/s; the card could do x16 at 64 GT/s")


def test_remedies(judged: Any) -> None:
    verdict = judged(CHECK, {"grep": ("sysfs/pcie-link-width-8.txt", 0)}).verdict
    assert verdict.remedies[0].command == "lspci -vvv -s 0000:81:00.0"
    assert "x8, want x16" in verdict.reason


def test_what_the_kernel_does_not_know(judged: Any) -> None:
    text = link("32.0x16", "32.0x16")["grep"][0].replace(
        "current_link_width:16", "current_link_width:0"
    )
    assert judged(CHECK, {"grep": (text, 0)}).verdict.kind is Kind.UNDECIDABLE


def test_unreadable(judged: Any) -> None:
    gone = judged(CHECK, {"grep": ("", 2)}).verdict
    assert (gone.status, gone.error) == (Status.ERROR, "CommandFailed")
    cut = link("32.0x16", "32.0x16")["grep"][0][:-30]
    assert judged(CHECK, {"grep": (cut, 0)}).verdict.error == "ParseError"


def test_a_virtual_function_has_no_link_of_its_own(judged: Any, rail: Rail) -> None:
    machine = Machine("gpu-01", "gpu-roce", rails=(replace(rail, is_vf=True),))
    assert judged(CHECK, machine=machine).verdict.kind is Kind.NOT_APPLICABLE
