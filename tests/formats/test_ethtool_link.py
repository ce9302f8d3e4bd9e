"""``ethtool DEV`` of netlink and ioctl versions."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from commcheck.command import Output
from commcheck.errors import CommandFailed, ParseError, Unjudgeable
from commcheck.formats.ethtool_link import EthtoolLink, parse

RECORDED = Path(__file__).parents[1] / "recorded" / "ethtool"

MODES = (
    "1000baseKX/Full",
    "10000baseKR/Full",
    "25000baseCR/Full",
    "50000baseCR2/Full",
    "100000baseCR4/Full",
    "200000baseCR4/Full",
    "400000baseCR4/Full",
)
GOOD = EthtoolLink(
    device="ens1np0",
    detected=True,
    speed_mbits=400_000,
    lanes=4,
    duplex="Full",
    autoneg=True,
    port="FIBRE",
    supported=MODES,
    advertised=MODES,
)
DOWN = EthtoolLink(
    device="ens4np0",
    detected=False,
    autoneg=True,
    port="FIBRE",
    supported=MODES,
    advertised=MODES,
)
BNXT = ("50000baseCR/Full", "100000baseCR2/Full", "200000baseCR4/Full", "400000baseCR4/Full")
OLD = (*MODES[:2], "40000baseKR4/Full", "40000baseCR4/Full", *MODES[2:5])

FACTS = {
    "link-400g-good.txt": GOOD,
    "link-400g-nonroot.txt": GOOD,
    "link-100g-on-400g-port.txt": replace(GOOD, device="ens3np0", speed_mbits=100_000),
    "link-200g-bnxt.txt": EthtoolLink(
        device="ens26np0",
        detected=True,
        speed_mbits=200_000,
        duplex="Full",
        autoneg=False,
        port="FIBRE",
        supported=BNXT,
        advertised=BNXT,
    ),
    "link-down-no-cable.txt": replace(DOWN, reason="No cable"),
    "link-down-plain-old-kernel.txt": DOWN,
    "link-down-training.txt": replace(
        DOWN, reason="Link training failure", detail="Remote side is not ready yet"
    ),
    "link-old-ioctl-layout.txt": EthtoolLink(
        device="eth2",
        detected=True,
        speed_mbits=100_000,
        duplex="Full",
        autoneg=True,
        port="FIBRE",
        supported=OLD,
        advertised=OLD,
    ),
}


def text_of(name: str) -> str:
    return (RECORDED / name).read_text()


@pytest.mark.parametrize("name", FACTS)
def test_layout(name: str) -> None:
    assert parse(Output(text_of(name))) == FACTS[name]


def test_every_link_recording_is_named() -> None:
    assert {path.name for path in RECORDED.glob("link-*")} == set(FACTS)


@pytest.mark.parametrize("name", ["no-such-device.txt", "no-such-device-old.txt"])
def test_no_interface_is_not_link_down(name: str) -> None:
    text = text_of(name)
    for output in (Output(text, "", 75), Output("No data available\n", text, 75), Output(text)):
        with pytest.raises(CommandFailed, match="no such interface"):
            parse(output)


def test_a_refused_command_is_no_reading() -> None:
    with pytest.raises(CommandFailed, match="bad command line"):
        parse(Output("", text_of("json-not-supported.txt"), 1))


@pytest.mark.parametrize("name", FACTS)
def test_a_cut_answer_is_refused(name: str) -> None:
    text = text_of(name)
    for end in range(len(text)):
        with pytest.raises(ParseError):
            parse(Output(text[:end]))


@settings(max_examples=60)
@given(
    name=st.sampled_from(sorted(FACTS)),
    at=st.integers(0, 60),
    noise=st.sampled_from(["netlink error: Operation not permitted\n", "\x1b[0m\n", "\n"]),
)
def test_noise_between_lines_changes_no_link(name: str, at: int, noise: str) -> None:
    lines = text_of(name).splitlines(keepends=True)
    at %= len(lines)
    text = "".join([*lines[:at], noise, *lines[at:]])
    assert parse(Output(text)) == FACTS[name]
    assert parse(Output(text.replace("\n", "\r\n"))) == FACTS[name]


@settings(max_examples=100)
@given(
    name=st.sampled_from(sorted(FACTS)),
    line=st.integers(0, 60),
    at=st.integers(0, 80),
    by=st.sampled_from(["", "X", "\n", " "]),
)
def test_a_damaged_line_never_turns_the_link(name: str, line: int, at: int, by: str) -> None:
    lines = text_of(name).splitlines(keepends=True)
    line %= len(lines)
    at %= len(lines[line])
    lines[line] = lines[line][:at] + by + lines[line][at + 1 :]
    try:
        link = parse(Output("".join(lines)))
    except ParseError:
        return
    assert link.detected is FACTS[name].detected


def test_virtio_has_a_link_without_a_speed() -> None:
    text = "Settings for eth0:\n\tSpeed: Unknown!\n\tDuplex: Unknown! (255)\n\tLink detected: yes\n"
    assert parse(Output(text)) == EthtoolLink("eth0", True)


def test_an_unknown_reason_is_kept() -> None:
    text = "Settings for eth0:\n\tLink detected: no (42, 7)\n"
    assert parse(Output(text)) == EthtoolLink("eth0", False, reason="42", detail="7")


@pytest.mark.parametrize(
    "text",
    [
        "",
        "Settings for eth0:\n",
        "\tLink detected: yes\n",
        "Settings for eth0:\n\tLink detected: perhaps\n",
        "Settings for eth0:\n\tSpeed: 400Gb/s\n\tLink detected: yes\n",
        "Settings for a:\n\tLink detected: yes\nSettings for b:\n\tLink detected: no\n",
        "Settings for a:\n\tLink detected: yes\n\tLink detected: no\n",
    ],
)
def test_refuses(text: str) -> None:
    with pytest.raises(ParseError, match="ethtool"):
        parse(Output(text))


@settings(max_examples=50)
@given(st.text())
def test_any_text_is_read_or_refused(text: str) -> None:
    with pytest.raises(Unjudgeable):
        parse(Output(text))
