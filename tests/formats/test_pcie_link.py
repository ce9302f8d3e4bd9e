"""The PCIe link of an HCA in sysfs."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from commcheck.command import Output
from commcheck.errors import CommandFailed, ParseError, Unjudgeable
from commcheck.formats.pcie_link import PCIE_LINK, PcieLink, parse
from commcheck.model import Rail

RECORDED = Path(__file__).parents[1] / "recorded" / "sysfs"

GOOD = PcieLink(32.0, 16, 32.0, 16, 32.0, 16, 400.0)
FACTS = {
    "pcie-link-good.txt": GOOD,
    "pcie-link-old-kernel.txt": PcieLink(8.0, 16, 8.0, 16, rate_gbits=100.0),
    "pcie-link-pci-path.txt": PcieLink(32.0, 8, 32.0, 16),
    "pcie-link-width-8.txt": replace(GOOD, width=8),
}


def text_of(name: str) -> str:
    return (RECORDED / name).read_text()


@pytest.mark.parametrize("name", FACTS)
def test_facts(name: str) -> None:
    assert parse(Output(text_of(name))) == FACTS[name]
    # Files that are not there are no failure.
    assert parse(Output(text_of(name), "", 2)) == FACTS[name]


def test_every_recording_is_named() -> None:
    assert {path.name for path in RECORDED.glob("pcie-link-*")} == FACTS.keys()


def test_the_command_reads_card_slot_and_rate() -> None:
    command = PCIE_LINK.commands[0].on(Rail(0, "rocep129s0"))
    assert "/sys/class/infiniband/rocep129s0/device/../max_link_width" in command.argv
    assert command.argv[-1] == "/sys/class/infiniband/rocep129s0/device/max_link_width"


@pytest.mark.parametrize(
    ("old", "new", "field"),
    [
        ("device/current_link_speed:32.0 GT/s PCIe", "device/current_link_speed:Unknown", "speed"),
        (
            "device/current_link_speed:32.0 GT/s PCIe",
            "device/current_link_speed:Unknown speed",
            "speed",
        ),
        ("current_link_width:16", "current_link_width:0", "width"),
        ("device/max_link_width:16", "device/max_link_width:255", "max_width"),
    ],
)
def test_what_the_kernel_does_not_know_is_not_zero(old: str, new: str, field: str) -> None:
    link = parse(Output(text_of("pcie-link-good.txt").replace(old, new)))
    assert getattr(link, f"{field}_gts" if field == "speed" else field) is None


@pytest.mark.parametrize(
    ("speed", "gts"), [("2.5 GT/s PCIe", 2.5), ("64.0 GT/s PCIe", 64.0), ("16 GT/s", 16.0)]
)
def test_speeds(speed: str, gts: float) -> None:
    text = text_of("pcie-link-good.txt").replace("32.0 GT/s PCIe", speed)
    assert parse(Output(text)) == replace(
        GOOD, speed_gts=gts, max_speed_gts=gts, slot_speed_gts=gts
    )


def test_no_such_files() -> None:
    for rc in (1, 2):
        with pytest.raises(CommandFailed, match="no PCIe link"):
            parse(Output("", "", rc))


@pytest.mark.parametrize("name", FACTS)
def test_a_cut_answer_is_refused(name: str) -> None:
    text = text_of(name)
    end_of_last = text.rindex("/max_link_width:")
    for end in range(1, end_of_last):
        with pytest.raises(ParseError):
            parse(Output(text[:end]))
    for end in range(end_of_last, len(text)):
        try:
            assert parse(Output(text[:end])) == FACTS[name]
        except ParseError:
            continue


@settings(max_examples=100)
@given(
    name=st.sampled_from(sorted(FACTS)),
    line=st.integers(0, 9),
    at=st.integers(0, 80),
    by=st.sampled_from(["X", "\n", " "]),
)
def test_a_damaged_line_never_changes_the_link(name: str, line: int, at: int, by: str) -> None:
    lines = text_of(name).splitlines(keepends=True)
    line %= len(lines)
    at %= len(lines[line])
    lines[line] = lines[line][:at] + by + lines[line][at + 1 :]
    try:
        assert parse(Output("".join(lines))) == FACTS[name]
    except ParseError:
        return


@pytest.mark.parametrize(
    ("old", "new"),
    [
        ("current_link_width:16", "current_link_width:17"),
        ("current_link_width:16", "current_link_width:x16"),
        ("32.0 GT/s", "32.0 MT/s"),
        ("400 Gb/sec (4X NDR)", "400G"),
    ],
)
def test_refuses(old: str, new: str) -> None:
    text = text_of("pcie-link-good.txt")
    assert old in text
    with pytest.raises(ParseError, match="sysfs-pcie"):
        parse(Output(text.replace(old, new)))
    with pytest.raises(ParseError):
        parse(Output(text * 2))


@settings(max_examples=50)
@given(st.text())
def test_any_text_is_read_or_refused(text: str) -> None:
    with pytest.raises(Unjudgeable):
        parse(Output(text))
