"""One is not several."""

from __future__ import annotations

import pytest

from commcheck.report.counts import many


@pytest.mark.parametrize(
    ("count", "nouns", "said"),
    [
        (0, "", "0 hosts"),
        (1, "", "1 host"),
        (1912, "", "1,912 hosts"),
        (2, "boxes", "2 boxes"),
    ],
)
def test_many(count: int, nouns: str, said: str) -> None:
    assert many(count, "host", nouns) == said
