from __future__ import annotations

import re

from hypothesis import given
from hypothesis import strategies as st

from commcheck.model import Evidence, Kind, Status
from commcheck.report.cards import slug
from commcheck.report.words import (
    EXIT_CODES,
    MARKS,
    VERDICTS,
    alike,
    command_of,
    folded,
    middle_cut,
    pieces,
    shown,
)


def test_every_status_and_kind_has_a_mark() -> None:
    kinds = {kind for kind in Kind if kind not in (Kind.NONE, Kind.HOST, Kind.CHECK)}
    assert {*Status, *kinds} <= set(MARKS)
    assert set(VERDICTS) == set(Status)
    assert set(EXIT_CODES) == {0, 1, 3, 130, 143}


@given(st.text(alphabet=st.sampled_from("gpu-[],0123\n"), max_size=120))
def test_pieces_are_the_whole_text(text: str) -> None:
    found = pieces(text)
    assert "".join(found) == text
    assert all(piece.endswith(",") for piece in found[:-1])


def test_long_ranges_are_cut_between_two() -> None:
    hosts = [f"n{number}" for number in range(0, 400, 2)]
    text = folded(hosts, 40)
    assert text.startswith("n[0,2,4,")
    assert text.endswith(", …")
    assert len(text) < 50


def test_values_read_as_a_person_would_say_them() -> None:
    for value, text in (
        (None, "none"),
        (True, "yes"),
        ([3, 4], "[3, 4]"),
        ([], "[]"),
        ("", '""'),
        ("dscp", "dscp"),
        (42.5, "42.5"),
        ({"rx": 1, "tx": [2]}, "rx 1, tx [2]"),
    ):
        assert shown(value) == text


def test_texts_that_differ_in_numbers_are_alike() -> None:
    assert alike("10.0.0.1 in 3 s, 0xdeadbeef0") == alike("10.0.12.1 in 15 s, 0xf00d")
    assert alike("rail up") != alike("rail down")


def test_a_long_text_keeps_its_head_and_tail() -> None:
    text = middle_cut("a" * 600 + "b" * 600, 100)
    assert text.startswith("a" * 50 + "\n[... 1,100 characters left out]\n")
    assert text.endswith("b" * 50)
    assert middle_cut("short", 100) == "short"


def test_a_key_is_a_phase_and_a_command() -> None:
    def of(key: str) -> tuple[str, str]:
        return command_of(Evidence(key, 0, 0.0, ""))

    assert of("once: sudo mlnx_qos -i eth2") == ("sudo mlnx_qos -i eth2", "")
    assert of("end: ethtool -S eth2") == ("ethtool -S eth2", "at the end")
    assert of("password: hush") == ("password: ***", "")


@given(st.text(max_size=30), st.text(max_size=30))
def test_slugs_are_safe_and_differ(one: str, other: str) -> None:
    assert re.fullmatch(r"[A-Za-z0-9._-]*", slug(one))
    assert (slug(one) == slug(other)) is (one == other)
