"""Kernel modules by lsmod and by the kernel's own list."""

from __future__ import annotations

from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from commcheck.command import Output
from commcheck.errors import CommandFailed, ParseError, Unjudgeable
from commcheck.formats.kernel_modules import parse

RECORDED = Path(__file__).parents[1] / "recorded" / "modules"

STACK = {"nvidia", "ib_uverbs", "ib_core", "mlx5_ib", "mlx5_core"}
FACTS = {
    "lsmod-peermem.txt": STACK | {"nvidia_peermem"},
    "lsmod-no-peermem.txt": STACK,
    "lsmod-legacy-nv-peer-mem.txt": {"nv_peer_mem", "nvidia", "ib_core"},
}


def text_of(name: str) -> str:
    return (RECORDED / name).read_text()


@pytest.mark.parametrize("name", FACTS)
def test_facts(name: str) -> None:
    assert parse(Output(text_of(name))) == FACTS[name]
    header = "Module                  Size  Used by\n"
    assert parse(Output(header + text_of(name))) == FACTS[name]


def test_every_recording_is_named() -> None:
    assert {path.name for path in RECORDED.glob("*.txt")} == FACTS.keys()


def test_the_kernels_own_list() -> None:
    text = (
        "nvidia_peermem 16384 0 - Live 0x0000000000000000\n"
        "nvidia 56823808 2890 nvidia_uvm,nvidia_peermem, Live 0x0000000000000000 (PO)\n"
        "old_module 4096 - - Live 0x0000000000000000\n"
    )
    assert parse(Output(text)) == {"nvidia_peermem", "nvidia", "old_module"}


@pytest.mark.parametrize("name", FACTS)
def test_a_cut_line_is_refused_and_nothing_is_invented(name: str) -> None:
    text = text_of(name)
    for end in range(len(text)):
        whole = end > 0 and text[end - 1] == "\n"
        if whole:
            assert parse(Output(text[:end])) <= FACTS[name]
        else:
            with pytest.raises(ParseError):
                parse(Output(text[:end]))


@settings(max_examples=60)
@given(
    line=st.integers(0, 9),
    at=st.integers(0, 60),
    by=st.sampled_from(["", "X", "\n", " "]),
)
def test_a_damaged_line_never_loads_peermem(line: int, at: int, by: str) -> None:
    lines = text_of("lsmod-no-peermem.txt").splitlines(keepends=True)
    line %= len(lines)
    at %= len(lines[line])
    lines[line] = lines[line][:at] + by + lines[line][at + 1 :]
    try:
        assert not {"nvidia_peermem", "nv_peer_mem"} & parse(Output("".join(lines)))
    except ParseError:
        return


def test_failures() -> None:
    with pytest.raises(CommandFailed, match="No such file"):
        parse(Output("", "cat: /proc/modules: No such file or directory\n", 1))


@settings(max_examples=50)
@given(st.text(alphabet=st.characters(exclude_characters="0123456789")))
def test_any_text_is_read_or_refused(text: str) -> None:
    with pytest.raises(Unjudgeable):
        parse(Output(text))
