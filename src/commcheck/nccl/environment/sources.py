"""Where variables stand: process environments, dumps, configuration files, scripts. Text to layers.

Names that are not looked at are dropped here, before anything else sees them.
"""

from __future__ import annotations

import re
import shlex
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from itertools import pairwise
from typing import Any, Final

from commcheck.lazy import regex
from commcheck.nccl.environment.model import Layer, Setting
from commcheck.nccl.environment.names import is_kept

VALUE_MOST: Final = 1023
"""NCCL cuts names and values of a configuration file here (src/misc/param.cc)."""

_ASSIGNED: Final = regex(r"([A-Za-z_][A-Za-z0-9_]*)=(.*)", re.DOTALL)
_EXPORTED: Final = regex(r"(?:declare -x|export) (.*)")
_OPEN: Final = regex(r"\$[\w({]|`")


def process_environ(data: str, where: str) -> Layer:
    """``/proc/PID/environ``: records that NUL ends."""
    return _layer(data.split("\0"), lambda _: where)


def plain_dump(text: str, where: str) -> Layer:
    """What ``env`` or ``export -p`` print; further lines of a value of several are skipped."""
    lines = []
    for line in text.split("\n"):
        exported = _EXPORTED.fullmatch(line.rstrip("\r"))
        lines.append(_unquoted(exported[1]) if exported else line.removesuffix("\r"))
    return _layer(lines, lambda number: f"{where}:{number}")


def _layer(lines: Iterable[str], where: Callable[[int], str]) -> Layer:
    settings: dict[str, Setting] = {}
    for number, line in enumerate(lines, 1):
        match = _ASSIGNED.fullmatch(line)
        if match and is_kept(match[1]):
            settings[match[1]] = Setting(match[2], where(number))
    return Layer(settings)


def _unquoted(words: str) -> str:
    try:
        return "".join(shlex.split(words))
    except ValueError:
        return words


def conf_file(text: str, where: str) -> Layer:
    """``nccl.conf``: ``NAME=value``, ``#`` in the first column, nothing trimmed, no quotes.

    The first of two equal names counts: a file only adds what is not there yet.
    """
    settings: dict[str, Setting] = {}
    ignored = []
    for number, line in enumerate(text.split("\n"), 1):
        if not line.strip() or line.startswith("#"):
            continue
        place = f"{where}:{number}"
        name, sign, value = line.partition("=")
        if sign and is_kept(name):
            settings.setdefault(name, Setting(value[:VALUE_MOST], place))
        elif not sign or not re.fullmatch(r"[A-Za-z_][A-Za-z0-9_]*", name):
            ignored.append((place, _told(line)))
    return Layer(settings, tuple(ignored))


def _told(line: str) -> str:
    """A line as it may be shown: of one that may be a secret only the name."""
    name = re.search(r"[A-Za-z_][A-Za-z0-9_]*(?=\s*=)", line)
    if name is None or is_kept(name[0]):
        return line
    return f"{line[: name.end()].strip()}=..."


def script(text: str, where: str) -> Layer:
    """A job script: ``export``, ``NAME=value command``, ``-x NAME=value``, ``--export=ALL,...``.

    Also of ``docker run`` the forms of ``-e``, of Intel MPI ``-genv NAME value``, of a Dockerfile
    ``ENV``, and what ``bash -c`` runs. The last assignment counts, as the shell reads the file;
    what it computes is not known.
    """
    return _assigned(_commands(text), where)


def command(words: Sequence[str], where: str) -> Layer:
    """The same of a command that is given word by word, as a container's is."""
    return _assigned(_nested(1, words), where)


def handed_over(words: Sequence[str], where: str, own: Mapping[str, Setting]) -> Layer:
    """What a launcher's ``mpirun -x`` or ``mpiexec -genv`` gives to the ranks.

    ``own``: variables of the launcher, of which ``-x NAME`` hands the value over.
    """
    held, settings = dict(own), dict[str, Setting]()
    for number, told in _nested(1, words):
        for name, value in _assignments(told):
            if value is None or _OPEN.search(value):
                held.pop(name, None)
                settings.pop(name, None)
            else:
                held[name] = Setting(value, f"{where}:{number}")
        for flag, word in pairwise(told):
            name = word.partition("=")[0]
            if flag in ("-x", "-genv", "-env") and name in held:
                settings[name] = held[name]
    return Layer(settings)


def _assigned(commands: Iterable[tuple[int, Sequence[str]]], where: str) -> Layer:
    settings: dict[str, Setting] = {}
    untold: dict[str, str] = {}
    for number, words in commands:
        for name, value in _assignments(words):
            settings.pop(name, None)
            untold.pop(name, None)
            if value is not None and _OPEN.search(value):
                untold[name] = f"{where}:{number}"
            elif value is not None:
                settings[name] = Setting(value, f"{where}:{number}")
    return Layer(settings, untold=untold)


def _joined(text: str) -> Iterable[str]:
    """Lines, each with those that a backslash joins to it; the joined ones stay as empty lines."""
    held, count = "", 0
    for line in text.split("\n"):
        line = line.removesuffix("\r")
        held += line.removesuffix("\\")
        count += 1
        if line.endswith("\\") and len(held) < 65536:
            held += " "
            continue
        yield held
        for _ in range(count - 1):
            yield ""
        held, count = "", 0
    if held:
        yield held


NESTED_MOST: Final = 4
"""Shells within shells of which the commands are read."""


def _commands(text: str, depth: int = 0) -> Iterator[tuple[int, Sequence[str]]]:
    """The words of each line, by its number, and behind them those of what it gives to a shell."""
    for number, line in enumerate(_joined(text), 1):
        told = line.lstrip()
        if told.startswith("#") and not told.startswith("#SBATCH"):
            continue
        try:
            words = shlex.split(told.removeprefix("#SBATCH"), comments=True)
        except ValueError:
            words = told.split()
        yield from _nested(number, words, depth)


def _nested(
    number: int, words: Sequence[str], depth: int = 0
) -> Iterator[tuple[int, Sequence[str]]]:
    yield number, words
    for flag, word in pairwise(words):
        if depth < NESTED_MOST and re.fullmatch(r"-\w*c", flag) and len(word.split()) > 1:
            for within, inner in _commands(word, depth + 1):
                yield number + within - 1, inner


def _assignments(words: Sequence[str]) -> Iterator[tuple[str, str | None]]:
    if words[:1] == ["unset"]:
        yield from ((name, None) for name in words[1:] if is_kept(name))
        return
    if words[:1] == ["ENV"] and len(words) > 2 and "=" not in words[1] and is_kept(words[1]):
        yield words[1], " ".join(words[2:])
        return
    for flag, name, value in zip(words, words[1:], words[2:], strict=False):
        if flag in ("-genv", "-env") and is_kept(name):
            yield name, value
    for word in words:
        exported = word.removeprefix("--export=").rstrip(";")
        parts = (
            re.split(r",(?=[A-Za-z_]\w*(?:=|,|$))", exported) if word != exported else [exported]
        )
        for part in parts:
            match = _ASSIGNED.fullmatch(_ENV_OPTION.sub("", part).strip("'\""))
            if match and is_kept(match[1]):
                yield match[1], match[2]


_ENV_OPTION: Final = regex(r"^(?:--env=|-e(?=[A-Za-z_]\w*=))")


def from_mapping(values: Mapping[Any, object], where: str) -> Layer:
    """Variables of a document: numbers and truth values as the tools print them.

    What compose, a chart or ``envsubst`` fills in (``${X:-1}``) is not known. None is a value that
    stands elsewhere.
    """
    settings, untold = {}, {}
    for name, value in values.items():
        if not isinstance(name, str) or not is_kept(name) or isinstance(value, dict | list):
            continue
        text = str(value).lower() if isinstance(value, bool) else str(value)
        if value is None or _OPEN.search(text):
            untold[name] = where
        else:
            settings[name] = Setting(text, where)
    return Layer(settings, untold=untold)
