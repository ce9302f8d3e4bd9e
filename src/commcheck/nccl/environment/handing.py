"""What ``srun`` hands on to the ranks of what a job script has set.

``srun --export=A,B=1`` hands on what it names and nothing else, ``NONE`` and ``NIL`` nothing at
all; what ``#SBATCH --export`` says holds for every step that says nothing, until SLURM_EXPORT_ENV
is unset or ALL. The list is cut at every comma. Source: srun(1) and sbatch(1), ``--export``.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from dataclasses import field
from typing import Final

from commcheck.lazy import dataclass, regex

DIRECTIVE: Final = "#SBATCH"

_ALL: Final = "ALL"
_BY_STEPS: Final = "SLURM_EXPORT_ENV"
_OTHERS: Final = frozenset(
    ("mpirun", "mpiexec", "mpiexec.hydra", "orterun", "torchrun", "deepspeed", "accelerate")
) | {"python", "python3"}
"""They get everything where they stand in the script itself."""

_COMMA: Final = regex(r",(?=(?:[^'\"]|'[^']*'|\"[^\"]*\")*\Z)")


def parts(text: str) -> list[str]:
    """A list cut at the commas that stand outside of quotes."""
    return _COMMA.split(text)


def exported(words: Sequence[str]) -> str | None:
    """What ``--export`` says in a command; None where it is not there."""
    for flag, word in zip(("", *words), words, strict=False):
        if word.startswith("--export="):
            return word.removeprefix("--export=")
        if flag == "--export":
            return word
    return None


@dataclass(slots=True)
class Handing:
    """Goes along with a script, command by command.

    ``lost``: by name, the step that does not hand a variable on; no step hands it on that came
    after it was set.
    """

    default: str = _ALL
    default_at: str = ""
    lost: dict[str, str] = field(default_factory=dict)
    _reached: set[str] = field(default_factory=set)

    def sets(self, name: str) -> None:
        """A variable is set anew: whether it is handed on is open again."""
        self.lost.pop(name, None)
        self._reached.discard(name)

    def command(
        self, words: Sequence[str], at: str, names: Iterable[str], *, is_inner: bool
    ) -> None:
        """One command, at a place. ``names``: what is set by then; ``is_inner``: within another."""
        if words[:1] == [DIRECTIVE]:
            if (told := exported(words)) is not None:
                self.default, self.default_at = told, f"{DIRECTIVE} --export={told} ({at})"
            return
        self._steps_get(words, at)
        programs = {word.rpartition("/")[2] for word in words}
        if "srun" in programs:
            self._step(words, at, names)
        elif programs & _OTHERS and not is_inner:
            self._reached.update(names)

    def _steps_get(self, words: Sequence[str], at: str) -> None:
        if words[:1] == ["unset"] and _BY_STEPS in words:
            self.default, self.default_at = _ALL, ""
        for word in words:
            if word.startswith(f"{_BY_STEPS}="):
                told = word.partition("=")[2].rstrip(";")
                self.default, self.default_at = told, f"{word} ({at})"

    def _step(self, words: Sequence[str], at: str, names: Iterable[str]) -> None:
        own = exported(words)
        told = self.default if own is None else own
        by = self.default_at if own is None else f"srun --export={own} ({at})"
        handed = {part.partition("=")[0].strip() for part in parts(told)}
        is_open = "$" in told or _ALL in {name.upper() for name in handed}
        for name in names:
            if is_open or name in handed:
                self._reached.add(name)
            else:
                self.lost.setdefault(name, by)

    def held_back(self) -> dict[str, list[str]]:
        """Names that reach no rank, by what holds them back."""
        found: dict[str, list[str]] = {}
        for name, by in self.lost.items():
            if name not in self._reached:
                found.setdefault(by, []).append(name)
        return found


_VALUE: Final = regex(r"[a-z]\w*\d(?::\d+)?")
"""Looks like the name of a device or an interface, and like no variable's."""


def cut_off(words: Sequence[str]) -> tuple[str, list[str]]:
    """Of ``--export=ALL,NCCL_IB_HCA=mlx5_0,mlx5_1`` the assignment and what is cut off from it."""
    before, rest = "", list[str]()
    for part in parts(exported(words) or ""):
        if re.match(r"\w+=", part):
            if rest:
                break
            before = part
        elif before and _VALUE.fullmatch(part):
            rest.append(part)
        elif not rest:
            before = ""
    return (before, rest) if rest else ("", [])
