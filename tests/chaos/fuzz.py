"""Looks for bytes that targets cannot take: ``fuzz GLOB SECONDS SEED FOLDER``.

atheris (libFuzzer) is led by what the bytes reach. Each new bug leaves its bytes and its traceback
in FOLDER, and the search goes on; what takes over 10 s or 2 GiB ends it, and leaves its bytes too.
``fuzz FILE`` runs a file of FOLDER again. Started as ``python -m tests.chaos.fuzz``.
"""

from __future__ import annotations

import sys
import tempfile
import traceback
from fnmatch import fnmatchcase
from pathlib import Path

import atheris

with atheris.instrument_imports(include=["commcheck"]):
    from tests.chaos.targets import all_targets, seeds

LIMITS = ("-timeout=10", "-rss_limit_mb=2048", "-max_len=20000", "-verbosity=0")


class Search:
    """Two bytes choose the target, the rest is what it gets."""

    def __init__(self, pattern: str, found: Path) -> None:
        self.targets = [each for each in all_targets().items() if fnmatchcase(each[0], pattern)]
        assert self.targets, pattern
        self.found = found
        self.known: set[tuple[str, ...]] = set()

    def seeds(self, folder: Path) -> None:
        for number, (name, take) in enumerate(self.targets):
            for at, data in enumerate(seeds(name, take)):
                (folder / f"{number}-{at}").write_bytes(number.to_bytes(2) + data)

    def once(self, data: bytes) -> None:
        """One try. What a target raises is a bug."""
        name, take = self.targets[int.from_bytes(data[:2]) % len(self.targets)]
        try:
            take(data[2:])
        except Exception as error:  # noqa: BLE001 - whatever it is
            self.keep(name, data[2:], error)

    def keep(self, name: str, data: bytes, error: Exception) -> None:
        last = traceback.extract_tb(error.__traceback__)[-3:]
        key = (name, type(error).__name__, *(f"{at.filename}:{at.lineno}" for at in last))
        if key not in self.known:
            self.known.add(key)
            file = self.found / f"{name}@{len(self.known)}"
            file.write_bytes(data)
            told = "".join(traceback.format_exception(error))
            file.with_name(f"{file.name}.txt").write_text(told[-4000:], errors="replace")


def again(file: Path) -> None:
    """Run kept bytes; the traceback is Python's."""
    all_targets()[file.name.partition("@")[0]](file.read_bytes())


def main(words: list[str]) -> None:
    if len(words) == 1:
        again(Path(words[0]))
        return
    pattern, seconds, seed, found = words
    search = Search(pattern, Path(found))
    corpus = Path(tempfile.mkdtemp(prefix="commcheck-corpus-"))
    search.seeds(corpus)
    limits = [*LIMITS, f"-max_total_time={seconds}", f"-seed={seed}", f"-artifact_prefix={found}/"]
    atheris.Setup([sys.argv[0], *limits, str(corpus)], search.once)
    atheris.Fuzz()


if __name__ == "__main__":
    main(sys.argv[1:])
