"""A simulated host as a folder: fake tools, their rendered answers, /sys and /proc."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path
from typing import Final

from commcheck.demo import sysfs, tools
from commcheck.demo.state import HostState
from commcheck.demo.tools import Answer

DISPATCHER: Final = r"""#!/bin/sh
# Prints what was rendered for these words: a file named by them, beside it what else there is.
tool=${0##*/}
here=${0%/*}/../answers
words=$*
answer=$here/$tool${words:+ $words}
if [ ! -e "$answer" ]; then answer=$here/$tool; fi
if [ -e "$answer.hangs" ]; then exec sleep 3600; fi
if [ -e "$answer.floods" ]; then yes "$tool" | head -c 100000000; exit 0; fi
if [ ! -e "$answer" ]; then
  echo "$tool: this simulated host knows no '$tool $words'" >&2
  exit 64
fi
if [ -e "$answer.err" ]; then cat "$answer.err" >&2; fi
rc=0
if [ -e "$answer.rc" ]; then read -r rc <"$answer.rc"; fi
if [ -s "$answer" ]; then cat "$answer"; fi
exit "$rc"
"""
"""Every fake tool. Written with what any sh has, since it is started hundreds of times a run."""


def write(host: HostState, folder: Path, queries: Iterable[str] = ()) -> None:
    """Render a host into ``folder``: ``bin``, ``answers``, ``root`` with /sys and /proc."""
    for name in ("bin", "answers", "root/sys", "root/proc", "home"):
        (folder / name).mkdir(parents=True)
    dispatcher = folder / "bin" / ".dispatcher"
    dispatcher.write_text(DISPATCHER)
    dispatcher.chmod(0o755)
    for tool in tools.TOOLS:
        (folder / "bin" / tool).symlink_to(dispatcher.name)
    for answer in _as_answered(host, queries):
        _write_answer(host, folder / "answers" / " ".join(answer.argv), answer)
    made: set[Path] = set()
    for path, text in sysfs.files(host):
        file = folder / "root" / path
        _make(file.parent, made)
        file.write_text(text)
    for path, target in sysfs.links(host):
        link = folder / "root" / path
        _make(link.parent, made)
        link.symlink_to(target)


def _as_answered(host: HostState, queries: Iterable[str]) -> Iterable[Answer]:
    """The answers; a tool that is missing says what sh says of it, whatever is asked."""
    for answer in tools.answers(host, queries):
        if answer.argv[0] not in host.missing:
            yield answer
    for tool in sorted(host.missing):
        yield Answer((tool,), "", f"sh: 1: {tool}: not found\n", 127)


def _write_answer(host: HostState, path: Path, answer: Answer) -> None:
    words = " ".join(answer.argv)
    path.write_text(answer.stdout)
    if answer.stderr:
        path.with_name(f"{path.name}.err").write_text(answer.stderr)
    if answer.rc:
        path.with_name(f"{path.name}.rc").write_text(f"{answer.rc}\n")
    if words.startswith(host.hanging):
        path.with_name(f"{path.name}.hangs").touch()
    if words.startswith(host.flooding):
        path.with_name(f"{path.name}.floods").touch()


def _make(folder: Path, made: set[Path]) -> None:
    if folder not in made:
        folder.mkdir(parents=True, exist_ok=True)
        made.add(folder)
