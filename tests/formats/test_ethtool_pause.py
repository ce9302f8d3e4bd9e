"""``ethtool -a DEV`` as text and as JSON."""

from __future__ import annotations

from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from commcheck.command import Output
from commcheck.errors import CommandFailed, ParseError, Unjudgeable
from commcheck.formats.ethtool_pause import EthtoolPause, parse

RECORDED = Path(__file__).parents[1] / "recorded" / "ethtool"

OFF = EthtoolPause("ens1np0", autoneg=False, rx=False, tx=False)
FACTS = {
    "pause-off.txt": OFF,
    "pause-off.json": OFF,
    "pause-with-stats.txt": OFF,
    "pause-global-on.txt": EthtoolPause("ens1np0", autoneg=False, rx=True, tx=True),
    # "RX negotiated" is not the setting.
    "pause-negotiated.txt": EthtoolPause("eth2", autoneg=True, rx=True, tx=True),
}


def text_of(name: str) -> str:
    return (RECORDED / name).read_text()


@pytest.mark.parametrize("name", FACTS)
def test_facts(name: str) -> None:
    assert parse(Output(text_of(name))) == FACTS[name]


def test_every_recording_is_named() -> None:
    names = {path.name for path in RECORDED.glob("pause-*")}
    assert names == FACTS.keys() | {"pause-not-supported.txt"}


def test_a_driver_without_it_is_a_reading() -> None:
    text = text_of("pause-not-supported.txt")
    assert parse(Output("", text, 1)) is None
    assert parse(Output(text, "", 1)) is None


def test_no_interface_is_none() -> None:
    with pytest.raises(CommandFailed, match="ethtool -a failed"):
        parse(Output("", text_of("no-such-device.txt"), 75))


@pytest.mark.parametrize("name", FACTS)
def test_a_cut_answer_is_refused_or_tells_the_same(name: str) -> None:
    text = text_of(name)
    for end in range(len(text)):
        try:
            found = parse(Output(text[:end]))
        except ParseError:
            continue
        assert found == FACTS[name]
        assert end > text.lower().index("tx")


@settings(max_examples=100)
@given(
    name=st.sampled_from(sorted(FACTS)),
    line=st.integers(0, 9),
    at=st.integers(0, 40),
    by=st.sampled_from(["", "X", "\n", " "]),
)
def test_a_damaged_line_never_turns_a_setting(name: str, line: int, at: int, by: str) -> None:
    lines = text_of(name).splitlines(keepends=True)
    line %= len(lines)
    at %= len(lines[line])
    lines[line] = lines[line][:at] + by + lines[line][at + 1 :]
    try:
        found = parse(Output("".join(lines)))
    except ParseError:
        return
    assert found is not None
    wanted = FACTS[name]
    assert (found.autoneg, found.rx, found.tx) == (wanted.autoneg, wanted.rx, wanted.tx)


@pytest.mark.parametrize(
    "text",
    [
        "",
        "[]",
        "[1]",
        '[{"ifname": "a", "autonegotiate": false, "rx": false}]',
        '[{"ifname": "a", "autonegotiate": 0, "rx": 0, "tx": 0}]',
        text_of("pause-off.txt") * 2,
        text_of("pause-off.txt").replace("TX:\t\toff\n", ""),
        text_of("pause-off.txt").replace("RX:\t\toff", "RX:\t\tn/a"),
    ],
)
def test_refuses(text: str) -> None:
    with pytest.raises(ParseError, match="ethtool-pause"):
        parse(Output(text))


@settings(max_examples=50)
@given(st.text() | st.text(alphabet='[]{}":,truefalsRXTX on\t', min_size=1))
def test_any_text_is_read_or_refused(text: str) -> None:
    with pytest.raises(Unjudgeable):
        parse(Output(text))
