"""Whatever the bytes: an inventory is read, or refused in lines; ranges count as they should."""

from __future__ import annotations

import contextlib
import gc
import json
import string
import time
from collections.abc import Callable
from functools import partial
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from commcheck.errors import InventoryError
from commcheck.inventory import ini_source, json_source, yaml_source
from commcheck.inventory.endpoint import endpoint
from commcheck.inventory.load import Inventory, load
from commcheck.inventory.patterns import matching
from commcheck.inventory.ranges import expand, split_port
from commcheck.model import Host

WORDS = """
all: hosts: children: vars: <<: &a *a !vault !x {{ }} [ ] { } , : - ? ' " | > # --- ... %YAML
[g] [g:vars] [g:children] a[1:3] a=1 x=2.20 = \\ 0x_ 09 0_ 1:2 2001-99-99 .inf ~ null yes plugin:
ansible_host ansible_group_priority= commcheck_platform={{a}} @ $ANSIBLE_VAULT; !!binary !!set
!!python/object:os.system \\u0000 \\ud800 é 名
"""
PIECES = st.sampled_from(
    [*WORDS.split(), "\n", "\n  ", "\n    ", "\t", " ", "\r\n", "\x85", "\ufeff", "\x0b"]
)
TEXTS = st.lists(PIECES, max_size=40).map(" ".join) | st.lists(PIECES, max_size=40).map("".join)
CONTENT = st.binary(max_size=200) | TEXTS.map(str.encode)


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("any")


def refused(act: Callable[[], object]) -> tuple[str, ...]:
    """The lines with which something was refused; none where it was not."""
    try:
        act()
    except InventoryError as error:
        return error.problems
    return ()


@pytest.mark.parametrize("name", ["y.yml", "i.ini", "hosts"])
@given(content=CONTENT, variables=CONTENT)
@settings(max_examples=150)
def test_any_bytes_are_read_or_refused(
    folder: Path, name: str, content: bytes, variables: bytes
) -> None:
    (folder / "group_vars").mkdir(exist_ok=True)
    (folder / name).write_bytes(content)
    (folder / "group_vars/all.yml").write_bytes(variables)
    lines = refused(lambda: load([name], cwd=folder))
    assert all("error:" in line and "\n" not in line for line in lines)
    if not lines:
        inventory = load([name], cwd=folder)
        assert inventory.hosts
        json.dumps([dict(host.variables) for host in inventory.hosts]).encode()
        for host in inventory.hosts:
            assert len(refused(partial(endpoint, host))) <= 1


@given(text=TEXTS)
@settings(max_examples=150)
def test_the_pure_readers_never_raise(text: str) -> None:
    for parse in (yaml_source.parse, ini_source.parse, json_source.parse):
        declared = parse(text, "x")
        assert all(problem.at.line >= 1 for problem in declared.notes.errors)
    yaml_source.parse_variables(text, "x")


JSON = st.recursive(
    st.none() | st.booleans() | st.floats() | st.text(max_size=5) | st.integers(),
    lambda inner: (
        st.lists(inner, max_size=3)
        | st.dictionaries(
            st.sampled_from(["_meta", "hostvars", "all", "hosts", "children", "vars", "g", "a"]),
            inner,
            max_size=4,
        )
    ),
    max_leaves=12,
)


@given(data=JSON)
@settings(max_examples=150)
def test_any_answer_of_a_dynamic_inventory_is_read_or_refused(data: object) -> None:
    declared = json_source.parse(json.dumps(data), "exec:x")
    assert (
        declared.statements
        or declared.notes.errors
        or not data
        or data == {"_meta": None}
        or (isinstance(data, dict))
    )


@given(first=st.integers(0, 2000), count=st.integers(0, 50), step=st.integers(1, 7))
def test_numbers_count_from_begin_to_end_inclusive(first: int, count: int, step: int) -> None:
    last = first + count
    plain = expand(f"n[{first}:{last}:{step}].x")
    assert plain == [f"n{number}.x" for number in range(first, last + 1, step)]
    width = len(str(last)) + 1
    padded = expand(f"n[{first:0{width}}:{last:0{width}}:{step}]")
    assert padded == [f"n{number:0{width}}" for number in range(first, last + 1, step)]


@given(ends=st.lists(st.sampled_from(string.ascii_lowercase), min_size=2, max_size=2).map(sorted))
def test_letters_and_several_ranges(ends: list[str]) -> None:
    letters = string.ascii_lowercase
    between = letters[letters.index(ends[0]) : letters.index(ends[1]) + 1]
    names = expand(f"r[{ends[0]}:{ends[1]}]-[1:2]")
    assert names == [f"r{letter}-{number}" for letter in between for number in "12"]


@given(text=st.text(max_size=30) | st.text("n[]:0129az-", max_size=14))
def test_any_host_pattern_is_names_or_a_reason(text: str) -> None:
    pattern, port = split_port(text)
    assert port is None or text.endswith(f"{port}") or text.rpartition(":")[2].isdigit()
    with contextlib.suppress(ValueError):
        assert len(expand(pattern)) >= 1


@pytest.mark.parametrize(
    ("text", "name", "port"),
    [
        ("gpu-01", "gpu-01", None),
        ("gpu-01.example:2222", "gpu-01.example", 2222),
        ("10.0.0.1:22", "10.0.0.1", 22),
        ("[2001:db8::1]:22", "2001:db8::1", 22),
        ("2001:db8::1", "2001:db8::1", None),
        ("n[01:03]:22", "n[01:03]", 22),
        ("n[01:03]", "n[01:03]", None),
        ("a:b", "a:b", None),
        ("-x:22", "-x:22", None),
    ],
)
def test_a_port_behind_an_address(text: str, name: str, port: int | None) -> None:
    assert split_port(text) == (name, port)


FLEET = Inventory(
    tuple(Host(f"n{number}") for number in range(9)),
    {"all": tuple(f"n{number}" for number in range(9)), "ungrouped": (), "g": ("n1", "n2", "n3")},
    (),
    (),
    "",
)


@given(text=st.text(max_size=20) | st.text("allgn0123*?[]!&~:,-.^$()|+", max_size=16))
def test_any_pattern_selects_in_inventory_order_or_is_refused(text: str) -> None:
    chosen: list[Host] = []
    lines = refused(lambda: chosen.extend(matching(FLEET, text, cwd=Path("/nonexistent"))))
    assert len(lines) <= 1
    assert chosen == sorted(chosen, key=lambda host: host.name)


def test_two_thousand_hosts_load_at_once(tmp_path: Path) -> None:
    rows = [
        f"        gpu-{number:04}: {{ansible_host: 10.0.{number // 250}.{number % 250}, "
        f"rack: r{number % 40}, commcheck_leaf: leaf-{number // 16}, "
        f"bmc: 10.1.0.{number % 250}, serial: S{number}}}\n"
        for number in range(2000)
    ]
    text = "all:\n  children:\n    gpu:\n      vars: {a: 1, b: 2}\n      hosts:\n" + "".join(rows)
    (tmp_path / "y.yml").write_text(text)
    gc.disable()  # else it also walks what thousands of tests left in this process
    try:
        began = time.process_time()
        inventory = load(["y.yml"], cwd=tmp_path)
        spent = time.process_time() - began
    finally:
        gc.enable()
    assert len(inventory.hosts) == 2000
    assert inventory.hosts[-1].variables["commcheck_leaf"] == "leaf-124"
    # 0.25 s on an idle core; the margin is for a busy one.
    assert spent < 1.5
