"""Twenty commands on a host, one of which prints 200 kB: what every client in the race runs.

Why: a sweep asks some twenty things of each host; one answer (counters, a log) is long.
Reads: the commands of ``benchmarks/commands.txt``. One verdict for each host.
"""

from __future__ import annotations

import shlex
from dataclasses import make_dataclass
from pathlib import Path
from typing import Any

from commcheck.check import Check, Nothing, Reader, failed, passed, reads
from commcheck.command import Command, Output, require_ok
from commcheck.model import Cause, Machine, Verdict, Words

COMMANDS = tuple((Path(__file__).parents[2] / "commands.txt").read_text().splitlines())
LONG_BYTES = 200_000

SILENT = Cause(
    slug="twenty-silent",
    title=Words("A command said too little", "命令输出过少"),
    meaning=Words("The commands of the race print a known amount.", "比赛命令的输出量是已知的。"),
    remedies=(),
)


def _parser(words: str) -> Any:
    def parse(output: Output) -> int:
        require_ok(output, words)
        return len(output.stdout)

    return parse


# Twenty fields by hand would say nothing more.
Seen: Any = make_dataclass(
    "Seen",
    [
        (
            f"command_{number}",
            int,
            reads(Reader(words, (Command(tuple(shlex.split(words))),), _parser(words))),
        )
        for number, words in enumerate(COMMANDS)
    ],
    frozen=True,
    slots=True,
)


def judge(seen: Any, _machine: Machine, _want: Nothing, _limits: Nothing) -> Verdict:
    """Every answer arrived, the long one whole."""
    sizes = [getattr(seen, f"command_{number}") for number in range(len(COMMANDS))]
    if min(sizes) == 0 or max(sizes) < LONG_BYTES:
        return failed(SILENT, f"{min(sizes)} to {max(sizes)} bytes, wanted 1 to {LONG_BYTES}")
    return passed(f"{len(sizes)} commands answered, {sum(sizes)} bytes")


CHECK = Check(
    id="physical.twenty",
    title=Words("Twenty commands", "二十条命令"),
    subject=Machine,
    seen=Seen,
    judge=judge,
    causes=(SILENT,),
)
