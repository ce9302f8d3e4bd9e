"""Bytes that nobody thought of, for everything in the package that reads bytes from outside."""

from __future__ import annotations

import os
import random
import subprocess
import sys
from importlib.util import find_spec
from pathlib import Path

import pytest

from tests.chaos.seeds import FIRST, SOAK
from tests.chaos.targets import EXAMPLES, MADE, all_targets

SECONDS = int(os.environ.get("FUZZ_S", "600" if SOAK else "20"))
"""Of each search. What it takes to instrument the package comes on top."""

ODD = (
    *(b"", bytes(50), b"\xff\xfe\xed\xa0\x80", b"\x1b[2J\r\n", "\u202e\u2028\x85".encode()),
    *(b"[", b'{"a": 1}', b"[1, 2]", b'"x"', b"null", b"true", b"NaN", b"-1", b"1e999", b"0x"),
    *(b"9" * 5000, b'"\\ud800"', b"[[" * 6000, b'{"a":' * 6000, b"a = " + b"[" * 6000),
    *MADE,
)


@pytest.mark.slow
def test_every_target_takes_odd_bytes_or_refuses_them_in_order() -> None:
    chance = random.Random(FIRST)
    files = [path for folder in EXAMPLES for path in folder.rglob("*") if path.is_file()]
    for name, take in all_targets().items():
        for data in (*ODD, *(path.read_bytes()[:8000] for path in chance.sample(files, 6))):
            for begun in (data, bytes([chance.randrange(6)]) + data):
                try:
                    take(begun)
                except Exception as error:
                    error.add_note(f"{name} was given {begun[:200]!r}")
                    raise


@pytest.mark.slow
@pytest.mark.flaky(reruns=0)  # what it finds once is found
@pytest.mark.timeout(SECONDS + 280)
@pytest.mark.skipif(find_spec("atheris") is None, reason="atheris is not installed")
@pytest.mark.parametrize("targets", ["reader.*", "function.*", "whole.*"])
def test_a_search_led_by_what_is_reached_finds_nothing(targets: str, tmp_path: Path) -> None:
    words = [sys.executable, "-m", "tests.chaos.fuzz", targets, str(SECONDS), str(FIRST)]
    done = subprocess.run(
        [*words, str(tmp_path)],
        cwd=Path(__file__).parents[2],
        capture_output=True,
        text=True,
        check=False,
    )
    told = [file.read_text() for file in sorted(tmp_path.glob("*.txt"))]
    left = [(file.name, file.read_bytes()[:500]) for file in sorted(tmp_path.iterdir())]
    assert (told, left, done.returncode) == ([], [], 0), done.stderr[-2000:]
