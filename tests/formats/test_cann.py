"""The files that tell the releases of CANN and of the firmware."""

from __future__ import annotations

from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from commcheck.command import Output
from commcheck.errors import CommandFailed, ParseError, Unjudgeable
from commcheck.formats.cann import Releases, parse

RECORDED = Path(__file__).parents[1] / "recorded" / "cann"
TOOLKIT = (RECORDED / "toolkit.txt").read_text()


def test_recorded() -> None:
    assert parse(Output(TOOLKIT)) == Releases((("ascend-toolkit", "8.0.RC3"),), "7.5.0.1.129")
    alone = parse(Output((RECORDED / "nnae-only.txt").read_text(), rc=2))
    assert alone == Releases((("nnae", "7.0.0"),), None)
    newer = parse(Output((RECORDED / "toolkit-8.5.txt").read_text()))
    assert newer == Releases((("cann", "8.5.0"), ("cann-ops", "8.5.0")), "7.8.0.5.216")


def test_a_package_may_tell_its_version_in_two_places() -> None:
    place = "/usr/local/Ascend/nnae/latest"
    inner, outer = (
        f"{place}/{folder}ascend_nnae_install.info:version=8.0.RC3\n"
        for folder in ("x86_64-linux/", "")
    )
    assert parse(Output(outer)) == parse(Output(outer + inner)) == parse(Output(inner))
    with pytest.raises(ParseError, match="one version of nnae"):
        parse(Output(outer + inner.replace("8.0", "8.1")))


def test_nothing_installed_is_no_fault() -> None:
    assert parse(Output("", "", 2)) == Releases((), None)
    with pytest.raises(CommandFailed):
        parse(Output("", "not found", 127))


@pytest.mark.parametrize(
    "text",
    ["garbage\n", TOOLKIT * 2, TOOLKIT.replace("8.0.RC3", ""), TOOLKIT.replace("/latest/", "/x/")],
)
def test_refuses(text: str) -> None:
    with pytest.raises(ParseError):
        parse(Output(text))


@settings(max_examples=30)
@given(cut=st.integers(0, len(TOOLKIT) - 1))
def test_a_cut_answer_is_less_or_refused(cut: int) -> None:
    try:
        found = parse(Output(TOOLKIT[:cut]))
    except Unjudgeable:
        return
    assert found.firmware is None
