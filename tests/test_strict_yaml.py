"""The strict YAML walk: what values become, and what is refused before anything is built."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from commcheck.inventory.declared import Notes, Refused
from commcheck.strict_yaml import (
    MAX_BYTES,
    MAX_NODES,
    Items,
    Node,
    Pairs,
    Scalar,
    compose,
    read_file,
)


def plain(node: Node | None) -> object:
    match node:
        case Scalar():
            return node.value
        case Items():
            return [plain(each) for each in node.nodes]
        case Pairs():
            return {key: plain(value) for key, (_, value) in node.nodes.items()}
        case None:
            return None


def value(text: str) -> object:
    notes = Notes()
    read = plain(compose(text, "p.yaml", notes))
    assert not notes.errors
    return read


def refusal(text: str) -> str:
    notes = Notes()
    with pytest.raises(Refused) as caught:
        compose(text, "p.yaml", notes)
    return caught.value.problem.line()


@pytest.mark.parametrize(
    ("text", "wanted"),
    [
        *((word, word) for word in ("no", "on", "yes", "off", "True", "NULL", "22:30", "1_000")),
        *((word, word) for word in ("0x10", "0o7", "2026-12-15", ".inf", ".nan", "-x", "1.2.3")),
        ("true", True),
        ("false", False),
        ("null", None),
        ("~", None),
        ("1e3", 1000.0),
        ("-1.5", -1.5),
        (".5", 0.5),
        ("0", 0),
        ("+7", 7),
        ("'7'", "7"),
        ('"true"', "true"),
        ("|\n  7", "7\n"),
        ("gpu:&rack1:!gpu-07", "gpu:&rack1:!gpu-07"),
    ],
)
def test_values(text: str, wanted: object) -> None:
    read = value(f"x: {text}\n")
    assert read == {"x": wanted}
    assert type(read["x"]) is type(wanted)


def test_keys_are_text_as_written() -> None:
    assert value("on: 1\n010: 2\ntrue: 3\n'<<': 4\n") == {"on": 1, "010": 2, "true": 3, "<<": 4}


def test_aliases_stand_for_what_was_there() -> None:
    assert value("a: &x [1, &y {b: c}]\nd: *x\ne: *y\n") == {
        "a": [1, {"b": "c"}],
        "d": [1, {"b": "c"}],
        "e": {"b": "c"},
    }


def test_an_alias_bomb_is_counted_and_not_unfolded() -> None:
    lines = ["a0: &a0 [x, x, x, x, x, x, x, x, x, x]"]
    lines += [f"a{n}: &a{n} [{', '.join([f'*a{n - 1}'] * 10)}]" for n in range(1, 30)]
    assert refusal("\n".join(lines)).endswith("values, aliases unfolded [alias]")


def test_values_are_counted_once() -> None:
    fits = (MAX_NODES - 2) // 10  # ten words a list; the outer list and its lists count too
    assert value("[" + "[x,x,x,x,x,x,x,x,x]," * fits + "]") is not None
    assert "[alias]" in refusal("[" + "[x,x,x,x,x,x,x,x,x]," * (fits + 1) + "]")


@pytest.mark.parametrize(
    "text", ["!!python/object/apply:os.system [id]", "a: !vault x", "- !include /etc/passwd"]
)
def test_a_tag_is_refused(text: str) -> None:
    notes = Notes()
    compose(text, "p.yaml", notes)
    assert [each.rule for each in notes.errors] == ["tag"]


@pytest.mark.parametrize("text", ["[" * 60, "- " * 60 + "x", "{a: " * 60, "[" * 500_000])
def test_deep_nesting(text: str) -> None:
    assert refusal(text).startswith("p.yaml:1:")


def test_nothing_and_comments_are_no_document() -> None:
    assert compose("", "p.yaml", Notes()) is None
    assert compose("# a\n", "p.yaml", Notes()) is None
    assert value("---\nx: 1\n...\n") == {"x": 1}
    assert value("\ufeffx: 1\r\n") == {"x": 1}


@pytest.mark.parametrize(
    ("data", "says"),
    [
        (b"x" * (MAX_BYTES + 1), "{}:1:1: error: is over 1 MiB, so it is some other file [size]"),
        (b"a: b\r\nc: d\xff", "{}:2:5: error: byte 0xff is no UTF-8 [encoding]"),
    ],
    ids=["huge", "bytes"],
)
def test_files(tmp_path: Path, data: bytes, says: str) -> None:
    path = tmp_path / "p.yaml"
    path.write_bytes(data)
    with pytest.raises(Refused) as caught:
        read_file(path)
    assert caught.value.problem.line() == says.format(path)


def test_a_file_that_is_none(tmp_path: Path) -> None:
    with pytest.raises(Refused, match="cannot be read: Is a directory"):
        read_file(tmp_path)


WORDS = st.text(st.characters(exclude_categories=("C", "Zl", "Zp")), max_size=8)
NUMBERS = st.integers(-(10**14), 10**14) | st.floats(-1e6, 1e6).map(lambda x: round(x, 3))
VALUES = st.recursive(
    WORDS | NUMBERS | st.booleans() | st.none(),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(WORDS, inner, max_size=3),
    max_leaves=8,
)


@given(VALUES)
@settings(max_examples=60)
def test_json_is_read_as_json(wanted: object) -> None:
    assert value(json.dumps(wanted, ensure_ascii=False)) == wanted
