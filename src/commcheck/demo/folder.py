"""A simulated host as a folder: fake tools, their rendered answers, /sys and /proc."""

from __future__ import annotations

import contextlib
import os
import posixpath
import shlex
from collections.abc import Iterable, Mapping
from dataclasses import replace
from pathlib import Path
from typing import Final

from commcheck.demo.exchange import ASKER
from commcheck.demo.parts import Answer, File, Link, answers, entries, tool_names
from commcheck.demo.state import HostState
from commcheck.demo.traffic import TOOLS

DISPATCHER: Final = r"""#!/bin/sh
# Prints what was rendered for these words: a file named by them, beside it what else there is.
# No name of a file may be long: a comma in the words begins a name below.
tool=${0##*/}
here=${0%/*}/../answers
words=$*
case $tool:$words in hccn_tool:*ping\ -g*) exec "${0%/*}/.net/$tool" "$@" ;; esac
set -f
IFS=,
set -- $words
IFS=/
answer=$here/$tool${words:+ $*}
if [ ! -e "$answer" ]; then answer=$here/$tool; fi
if [ -e "$answer.hangs" ]; then exec sleep 3600; fi
if [ -e "$answer.floods" ]; then yes "$tool" | head -c 100000000; exit 0; fi
if [ ! -f "$answer" ]; then
  echo "$tool: this simulated host knows no '$tool $words'" >&2
  exit 64
fi
if [ -e "$answer.err" ]; then cat "$answer.err" >&2; fi
if [ ! -e "$answer.rc" ]; then exec cat "$answer"; fi
cat "$answer"
read -r rc <"$answer.rc"
exit "$rc"
"""
"""Every fake tool. Written with what any sh has, since it is started hundreds of times a run."""

SUDO: Final = {
    True: r"""#!/bin/sh
# sudo -n, for a user who may run anything: as on a real host, nothing of the environment stays.
if [ "$1" = -n ]; then shift; fi
exec env -i "PATH=$PATH" HOME=/root USER=root LOGNAME=root "$@"
""",
    False: """#!/bin/sh
echo 'sudo: a password is required' >&2
exit 1
""",
}
"""sudo, by whether it lets the user do anything."""

PYTHON: Final = r"""#!/bin/sh
# python3 -c STARTER TEXT OPTIONS, the training step; this simulated host knows nothing else.
if [ "$1" = -c ] && [ $# = 4 ]; then exec "${0%/*}/train_step" "$4"; fi
echo "python3: this simulated host knows no python3 $*" >&2
exit 64
"""
"""python3, which must not be that of the machine the demo runs on."""

TIME_PASSES: Final = "commcheck-time-passes"
"""Run between the first reading of what counts up and the second: puts later answers in place."""

LATER_S: Final = 1
"""Seconds by which the counters have moved on then: about as long as a visit takes."""


def write(host: HostState, folder: Path, queries: Iterable[str] = ()) -> None:
    """Render a host into ``folder``: ``bin``, ``answers``, ``root`` with /sys and /proc."""
    asked = tuple(queries)
    for name in ("bin", "answers", "root/sys", "root/proc", "home"):
        (folder / name).mkdir(parents=True)
    _script(folder / "bin" / ".dispatcher", DISPATCHER)
    for tool in {*tool_names(), *host.missing}:
        (folder / "bin" / tool).symlink_to(".dispatcher")
    _script(folder / "bin" / ".asker", ASKER)
    for tool in {*TOOLS} - host.missing:
        (folder / "bin" / tool).symlink_to(".asker")
    if host.npus:  # its pings leave the host, what else it says does not
        (folder / "bin" / ".net").mkdir()
        (folder / "bin" / ".net" / "hccn_tool").symlink_to("../.asker")
    _script(folder / "bin" / "sudo", SUDO[host.sudo])
    if "python3" not in host.missing:
        _script(folder / "bin" / "python3", PYTHON)
    now = _files(host, asked)
    later = _files(replace(host, second=host.second + LATER_S), asked)
    _script(folder / "bin" / TIME_PASSES, _overwriting(now, later))
    made = {str(folder)}
    for path, text in now.items():
        _write(f"{folder}/{path}", text, made)
    for each in entries(host):
        if isinstance(each, Link):
            link = f"{folder}/root/{each.path}"
            _make(posixpath.dirname(link), made)
            os.symlink(posixpath.relpath(each.target, posixpath.dirname(each.path)), link)  # noqa: PTH211


def _overwriting(now: Mapping[str, str], later: Mapping[str, str]) -> str:
    """A script that writes what is other later; builtins of the shell alone, no process each."""
    lines = [
        f"printf %s {shlex.quote(text)} >{shlex.quote(path)}"
        for path, text in later.items()
        if now.get(path) != text
    ]
    return "\n".join(("#!/bin/sh", 'cd "${0%/*}/.." || exit', *lines, ""))


def _script(path: Path, text: str) -> None:
    path.write_text(text)
    path.chmod(0o755)


def _files(host: HostState, queries: tuple[str, ...]) -> dict[str, str]:
    """Every file by its path in the host's folder."""
    files: dict[str, str] = {}
    for answer in _as_answered(host, queries):
        files.update(_files_of(host, answer))
    for each in entries(host):
        if isinstance(each, File):
            files[f"root/{each.path}"] = each.text
    return files


def _as_answered(host: HostState, queries: tuple[str, ...]) -> Iterable[Answer]:
    """The answers; a tool that is missing says what sh says of it, whatever is asked."""
    for answer in answers(host, queries):
        if answer.argv[0] not in host.missing:
            yield answer
    for tool in sorted(host.missing):
        yield Answer((tool,), "", f"sh: 1: {tool}: not found\n", 127)


def _files_of(host: HostState, answer: Answer) -> Iterable[tuple[str, str]]:
    words = " ".join(answer.argv)
    path = f"answers/{words.replace(',', '/')}"
    yield path, answer.stdout
    if answer.stderr:
        yield f"{path}.err", answer.stderr
    if answer.rc:
        yield f"{path}.rc", f"{answer.rc}\n"
    if words.startswith(host.hanging):
        yield f"{path}.hangs", ""
    if words.startswith(host.flooding):
        yield f"{path}.floods", ""


def _write(path: str, text: str, made: set[str]) -> None:
    _make(posixpath.dirname(path), made)
    with open(path, "w") as out:  # noqa: PTH123 - hundreds of files a host
        out.write(text)


def _make(folder: str, made: set[str]) -> None:
    if folder not in made:
        _make(posixpath.dirname(folder), made)
        with contextlib.suppress(FileExistsError):
            os.mkdir(folder)  # noqa: PTH102 - as above
        made.add(folder)
