"""``nvidia-smi nvlink -s``."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from commcheck.command import Output
from commcheck.errors import CommandFailed, ParseError, Unjudgeable
from commcheck.formats.nvidia_nvlink import NvlinkGpu, parse

RECORDED = Path(__file__).parents[1] / "recorded" / "nvidia-smi"

H100 = tuple(NvlinkGpu(index, "NVIDIA H100 80GB HBM3", (26.562,) * 18) for index in range(8))
LOST = tuple(None if link in (5, 11) else 26.562 for link in range(18))
A100_COUNT = (RECORDED / "nvlink-a100-good.txt").read_text().count("GPU ")
FACTS = {
    "nvlink-h100-good.txt": H100,
    "nvlink-inactive.txt": tuple(
        replace(gpu, links_gbytes=LOST) if gpu.index == 2 else gpu for gpu in H100
    ),
    "nvlink-a100-good.txt": tuple(
        NvlinkGpu(index, "NVIDIA A100-SXM4-80GB", (25.0,) * 12) for index in range(A100_COUNT)
    ),
    "nvlink-all-inactive.txt": (NvlinkGpu(0, "NVIDIA B200", all_inactive=True),),
    "nvlink-pcie-card.txt": (NvlinkGpu(0, "NVIDIA A10"), NvlinkGpu(1, "NVIDIA A10")),
}


def text_of(name: str) -> str:
    return (RECORDED / name).read_text()


@pytest.mark.parametrize("name", FACTS)
def test_facts(name: str) -> None:
    assert parse(Output(text_of(name))) == FACTS[name]


def test_active() -> None:
    assert FACTS["nvlink-inactive.txt"][2].active == 16


def test_every_recording_is_named() -> None:
    assert {path.name for path in RECORDED.glob("nvlink-*")} == FACTS.keys()


@pytest.mark.parametrize("name", FACTS)
def test_a_cut_answer_is_refused_or_lacks_whole_gpus(name: str) -> None:
    text, gpus = text_of(name), FACTS[name]
    for end in range(len(text)):
        try:
            found = parse(Output(text[:end]))
        except ParseError:
            continue
        # What no text can tell, the exit code does: more GPUs, or the first one's further links.
        *before, last = found
        assert tuple(before) == gpus[: len(before)]
        mine = gpus[len(before)]
        assert last.links_gbytes == mine.links_gbytes[: len(last.links_gbytes)]
        assert not last.links_gbytes or last == mine or not before


@settings(max_examples=100)
@given(
    name=st.sampled_from(sorted(FACTS)),
    line=st.integers(0, 200),
    at=st.integers(0, 60),
    by=st.sampled_from(["X", "\n"]),
)
def test_a_damaged_line_never_changes_a_link(name: str, line: int, at: int, by: str) -> None:
    lines = text_of(name).splitlines(keepends=True)
    line %= len(lines)
    at %= len(lines[line])
    lines[line] = lines[line][:at] + by + lines[line][at + 1 :]
    try:
        found = parse(Output("".join(lines)))
    except ParseError:
        return
    assert [gpu.links_gbytes for gpu in found] == [gpu.links_gbytes for gpu in FACTS[name]]
    assert [gpu.all_inactive for gpu in found] == [gpu.all_inactive for gpu in FACTS[name]]


def test_failures() -> None:
    with pytest.raises(CommandFailed, match="exit code 9"):
        parse(Output("", text_of("no-driver.txt"), 9))


@pytest.mark.parametrize(
    "text",
    [
        "",
        "No NVLink here\n",
        "\t Link 0: 26.562 GB/s\n",
        text_of("nvlink-inactive.txt").replace("<inactive>", "<unknown>"),
        text_of("nvlink-h100-good.txt").replace("GPU 1:", "GPU 2:"),
        text_of("nvlink-h100-good.txt").replace("Link 1:", "Link 2:"),
    ],
)
def test_refuses(text: str) -> None:
    with pytest.raises(ParseError, match="nvidia-smi-nvlink"):
        parse(Output(text))


@settings(max_examples=50)
@given(st.text())
def test_any_text_is_read_or_refused(text: str) -> None:
    with pytest.raises(Unjudgeable):
        parse(Output(text))
