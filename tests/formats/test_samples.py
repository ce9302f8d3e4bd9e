"""More samples, from the folder that ``COMMCHECK_SAMPLES`` names, where it is set.

What each recording must yield stands in the tests of its reader; here any text of any tool goes
through every reader: it is read, or refused with a reason, and nothing else happens.
"""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from commcheck.command import Output
from commcheck.discover import discover
from commcheck.errors import Unjudgeable
from commcheck.lookup import tools

SAMPLES = os.environ.get("COMMCHECK_SAMPLES", "")
FILES = sorted(path for path in Path(SAMPLES).rglob("*.*") if SAMPLES and path.is_file())
READERS = tools(discover(cwd=Path("/")))


@pytest.mark.skipif(not FILES, reason="COMMCHECK_SAMPLES names no folder with samples")
@pytest.mark.parametrize("tool", sorted(READERS))
def test_any_text_is_read_or_refused_with_a_reason(tool: str) -> None:
    reader = READERS[tool]
    for path in FILES:
        if path.stat().st_size > 200_000:
            continue
        text = path.read_bytes().decode("utf-8", "backslashreplace")
        for output in (Output(text), Output("", text, 1), Output(text, text, 1)):
            try:
                reader.parse(*[output] * len(reader.commands))
            except Unjudgeable as error:
                assert error.reason, path
