"""``nvidia-smi --query-gpu``: PCIe links by column name."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from commcheck.command import Output
from commcheck.errors import CommandFailed, ParseError, Unjudgeable
from commcheck.formats.nvidia_pcie import PcieGpu, parse

RECORDED = Path(__file__).parents[1] / "recorded" / "nvidia-smi"

BUSES = ("1b", "43", "52", "61", "9d", "c3", "d1", "df")
GOOD = tuple(
    PcieGpu(index, "NVIDIA H100 80GB HBM3", f"00000000:{bus}:00.0", 5, 5, 16, 16, is_idle=False)
    for index, bus in enumerate(BUSES)
)
FACTS = {
    "query-gpu-good.csv": GOOD,
    "query-gpu-na.csv": (replace(GOOD[0], gen=None), *GOOD[1:]),
    "query-gpu-width8-idlegen.csv": (
        *GOOD[:3],
        replace(GOOD[3], width=8),
        GOOD[4],
        replace(GOOD[5], gen=1, is_idle=True),
        *GOOD[6:],
    ),
}
OURS = (
    "index, name, pci.bus_id, pcie.link.gen.current, pcie.link.gen.max, pcie.link.width.current, "
    "pcie.link.width.max, utilization.gpu [%]\n"
    "0, NVIDIA H100 80GB HBM3, 00000000:1B:00.0, 1, 5, 16, 16, 0 %\n"
    "1, NVIDIA H100 80GB HBM3, 00000000:43:00.0, 5, 5, 16, 16, 98 %\n"
    "2, NVIDIA H100 80GB HBM3, 00000000:52:00.0, 5, 5, 16, 16, [N/A]\n"
)


def text_of(name: str) -> str:
    return (RECORDED / name).read_text()


@pytest.mark.parametrize("name", FACTS)
def test_facts(name: str) -> None:
    assert parse(Output(text_of(name))) == FACTS[name]


def test_every_recording_is_named() -> None:
    assert {path.name for path in RECORDED.glob("query-*")} == FACTS.keys()


def test_the_query_of_the_check() -> None:
    assert [(gpu.gen, gpu.load_percent, gpu.is_idle) for gpu in parse(Output(OURS))] == [
        (1, 0, None),
        (5, 98, None),
        (5, None, None),
    ]


@pytest.mark.parametrize("name", FACTS)
def test_a_cut_line_is_refused(name: str) -> None:
    text = text_of(name)
    for end in range(len(text)):
        try:
            found = parse(Output(text[:end]))
        except ParseError:
            continue
        assert text[end - 1] == "\n"
        assert found == FACTS[name][: len(found)]


@settings(max_examples=100)
@given(
    name=st.sampled_from(sorted(FACTS)),
    line=st.integers(1, 8),
    at=st.integers(0, 100),
    by=st.sampled_from(["X", "\n", ","]),
)
def test_a_damaged_row_never_changes_a_link(name: str, line: int, at: int, by: str) -> None:
    lines = text_of(name).splitlines(keepends=True)
    at %= len(lines[line])
    lines[line] = lines[line][:at] + by + lines[line][at + 1 :]
    try:
        found = parse(Output("".join(lines)))
    except ParseError:
        return
    assert [replace(gpu, name="") for gpu in found] == [
        replace(gpu, name="") for gpu in FACTS[name]
    ]


def test_an_unknown_field_fails_the_whole_query() -> None:
    said = 'Field "pcie.link.gen.max" is not a valid field to query.\n'
    with pytest.raises(CommandFailed, match="not a valid field"):
        parse(Output(said, "", 2))


@pytest.mark.parametrize(
    "text",
    [
        "",
        "index\n0\n",
        OURS.replace("1, NVIDIA", "2, NVIDIA", 1),
        OURS.replace("1, 5, 16, 16, 0 %", "1, 5, 16, 16"),
        OURS.replace("1, 5, 16, 16, 0 %", "1, 5, 64, 16, 0 %"),
        OURS.replace("00000000:1B:00.0", "1B"),
        OURS.splitlines(keepends=True)[0],
    ],
)
def test_refuses(text: str) -> None:
    with pytest.raises(ParseError, match="nvidia-smi-query"):
        parse(Output(text))


@settings(max_examples=50)
@given(st.text())
def test_any_text_is_read_or_refused(text: str) -> None:
    with pytest.raises(Unjudgeable):
        parse(Output(text))
