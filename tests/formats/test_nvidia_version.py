"""``/proc/driver/nvidia/version`` of both flavours."""

from __future__ import annotations

from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from commcheck.command import Output
from commcheck.errors import CommandFailed, ParseError, Unjudgeable
from commcheck.formats.nvidia_version import NvidiaVersion, parse

RECORDED = Path(__file__).parents[1] / "recorded" / "nvidia-version"

FACTS = {
    "open-550.txt": NvidiaVersion("550.54.15", is_open=True),
    "proprietary-535.txt": NvidiaVersion("535.161.08", is_open=False),
}


def text_of(name: str) -> str:
    return (RECORDED / name).read_text()


@pytest.mark.parametrize("name", FACTS)
def test_facts(name: str) -> None:
    assert parse(Output(text_of(name))) == FACTS[name]


@pytest.mark.parametrize("name", FACTS)
def test_a_cut_answer_is_refused_or_tells_the_same(name: str) -> None:
    text = text_of(name)
    first = text.index("\n") + 1
    for end in range(len(text)):
        if end < first:
            with pytest.raises(ParseError):
                parse(Output(text[:end]))
        else:
            assert parse(Output(text[:end])) == FACTS[name]


@settings(max_examples=60)
@given(
    name=st.sampled_from(sorted(FACTS)),
    at=st.integers(0, 200),
    by=st.sampled_from(["", "X", "\n", " "]),
)
def test_a_damaged_line_never_turns_the_flavour(name: str, at: int, by: str) -> None:
    text = text_of(name)
    at %= len(text)
    try:
        assert parse(Output(text[:at] + by + text[at + 1 :])).is_open is FACTS[name].is_open
    except ParseError:
        return


def test_not_loaded() -> None:
    with pytest.raises(CommandFailed):
        parse(Output("", "cat: /proc/driver/nvidia/version: No such file or directory\n", 1))


@settings(max_examples=50)
@given(st.text())
def test_any_text_is_read_or_refused(text: str) -> None:
    with pytest.raises(Unjudgeable):
        parse(Output(text))
