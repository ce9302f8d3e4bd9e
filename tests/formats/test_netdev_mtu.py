"""One number on a line of its own."""

from __future__ import annotations

from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from commcheck.command import Output
from commcheck.errors import CommandFailed, ParseError
from commcheck.formats.netdev_mtu import NetdevMtu, parse

RECORDED = Path(__file__).parents[1] / "recorded" / "sysfs"


@pytest.mark.parametrize(
    ("name", "mtus"), [("mtu-1500.txt", [1500, 9000]), ("mtu-9000.txt", [9000] * 2)]
)
def test_values_of_the_recordings(name: str, mtus: list[int]) -> None:
    lines = (RECORDED / name).read_text().splitlines()
    values = [line.partition(":")[2] for line in lines]
    assert [parse(Output(value + "\n")).mtu_bytes for value in values] == mtus


@given(st.integers(0, 65535), st.sampled_from(["\n", "\r\n"]))
def test_a_cut_number_is_refused(mtu: int, end: str) -> None:
    text = f"{mtu}{end}"
    assert parse(Output(f"cat: warning\n{text}")) == NetdevMtu(mtu)
    for cut in range(len(str(mtu)) + 1):
        with pytest.raises(ParseError, match="sysfs-mtu"):
            parse(Output(text[:cut]))


@given(st.text(alphabet="abc :\n"))
def test_other_text_is_refused(text: str) -> None:
    with pytest.raises(ParseError):
        parse(Output(text))


def test_two_numbers_are_refused() -> None:
    with pytest.raises(ParseError):
        parse(Output("1500\n9000\n"))


def test_no_file() -> None:
    with pytest.raises(CommandFailed, match="No such file"):
        parse(Output("", "cat: /sys/class/net/ens9/mtu: No such file or directory\n", 1))
