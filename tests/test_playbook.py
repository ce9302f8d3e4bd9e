"""The playbook reader: every message has file, line, column and the nearest right word."""

from __future__ import annotations

import contextlib
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from commcheck.discover import bundled_folder, discover
from commcheck.errors import PlaybookError
from commcheck.playbook import load, parse

FOUND = discover(cwd=Path("/"))
IDS = {one.id for one in FOUND}


def test_the_default_playbook_names_every_bundled_check() -> None:
    playbook = load(bundled_folder("playbooks") / "default.yaml", FOUND)
    assert {check for play in playbook.plays for check in play.checks} == IDS


@pytest.mark.parametrize(
    ("text", "says"),
    [
        ("", "p.yaml:1:1: error: wanted a playbook"),
        ("- a\n", "p.yaml:1:1: error: wanted a playbook"),
        ("name: x\n", "p.yaml:1:1: error: plays: wanted a list of plays"),
        ("name: x\nplays: []\n", "p.yaml:2:8: error: plays: wanted a list of plays"),
        ("name: x\nplay: []\n", "p.yaml:2:1: error: key: 'play' is none of"),
        ("name: x\nplay: []\n", "did you mean 'plays'?"),
        ("name: x\nname: y\nplays: [a]\n", "p.yaml:2:1: error: 'name' again (first on line 1)"),
        (
            "name: x\nplays:\n  - layer: physicl\n    checks: [a]\n",
            "p.yaml:3:12: error: layer: 'physicl' is none of",
        ),
        (
            "name: x\nplays:\n  - layer: physical\n    checks: [physical.nic-mtuu]\n",
            "p.yaml:4:14: error: no check 'physical.nic-mtuu' (did you mean 'physical.nic-mtu'?)",
        ),
        (
            "name: x\nplays:\n  - layer: library\n    checks: [physical.nic-mtu]\n",
            "'physical.nic-mtu' is no check of layer library",
        ),
        (
            "name: x\nplays:\n  - layer: library\n    checks: [library.*]\n"
            "  - layer: physical\n    checks: [physical.*]\n",
            "p.yaml:5:5: error: layer 'physical' after 'library' (line 3)",
        ),
        (
            "name: x\nplays:\n  - layer: physical\n"
            "    checks: [physical.nic-mtu, physical.nic-mtu]\n",
            "physical.nic-mtu again in this play",
        ),
        ("name: [\n", "p.yaml:2:1: error:"),
        ("name: x\n\tplays: []\n", "p.yaml:2:1: error:"),
        ("name: x\n---\nname: y\n", "p.yaml:2:1: error:"),
    ],
)
def test_wrong_playbooks(text: str, says: str) -> None:
    with pytest.raises(PlaybookError) as caught:
        parse(text, "p.yaml", FOUND)
    assert says in str(caught.value)


def test_several_problems_are_told_at_once_in_order() -> None:
    with pytest.raises(PlaybookError) as caught:
        parse("nam: x\nplays:\n  - layer: physical\n    checks: [physical.no]\n", "p.yaml", FOUND)
    assert [problem.split(": error:")[0] for problem in caught.value.problems] == [
        "p.yaml:1:1",
        "p.yaml:1:1",
        "p.yaml:4:14",
    ]


@pytest.mark.parametrize("data", [b"\xff\xfe\x00", b"x" * (1 << 21)], ids=["binary", "huge"])
def test_files_that_are_no_playbook(tmp_path: Path, data: bytes) -> None:
    path = tmp_path / "p.yaml"
    path.write_bytes(data)
    with pytest.raises(PlaybookError, match=r"p\.yaml: error"):
        load(path, FOUND)


@given(st.text(max_size=80) | st.text(alphabet="name:plys[]{}-*&!x \n\t", max_size=80))
def test_any_text_is_a_playbook_or_a_playbook_error(text: str) -> None:
    with contextlib.suppress(PlaybookError):
        parse(text, "p.yaml", FOUND)
