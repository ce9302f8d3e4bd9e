"""Where variables stand: process environments, dumps, configuration files, scripts. Text to layers.

Names that are not looked at are dropped here, before anything else sees them.
"""

from __future__ import annotations

import re
import shlex
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from itertools import pairwise
from typing import Any, Final

from commcheck.lazy import regex
from commcheck.nccl.environment.handing import DIRECTIVE, Handing, cut_off, parts
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
    ``ENV``, of Apptainer ``--env A=1,B=2``, of PBS ``-v``, of LSF ``-env``, and what ``bash -c``
    runs. The last assignment counts, as the shell reads the file; what it computes, and what a
    file holds that it sources, is not known, nor which of two branches is taken. What ``srun`` does
    not hand on is not set.
    """
    found = _assigned(_commands(text), where)
    given = _of_ray(text, where)
    mine = {name: each for name, each in found.settings.items() if name not in given.untold}
    others = {name: at for name, at in found.untold.items() if name not in given.settings}
    return replace(found, settings={**mine, **given.settings}, untold={**others, **given.untold})


_ENV_VARS: Final = regex(r"env_vars\\?[\"']\s*:\s*\{((?:[^{}]|\$\{[^{}]*\})*)\}")
_MEMBER: Final = regex(
    r"\\?[\"']([A-Za-z_]\w*)\\?[\"']\s*:\s*(?:\\?\"([^\"\\]*)\\?\"|'([^']*)'|([\w.$-]+))"
)


def _of_ray(text: str, where: str) -> Layer:
    """``--runtime-env-json='{"env_vars": {...}}'``, on one line or several: Ray sets it last."""
    settings, untold = dict[str, Setting](), dict[str, str]()
    for block in _ENV_VARS.finditer(text):
        for member in _MEMBER.finditer(text, block.start(1), block.end(1)):
            name, value = member[1], member[2] or member[3] or member[4] or ""
            at = f"{where}:{text.count(chr(10), 0, member.start()) + 1}"
            if is_kept(name) and _OPEN.search(value):
                untold[name] = at
            elif is_kept(name):
                settings[name] = Setting(value, at)
    return Layer(settings, untold=untold)


def command(words: Sequence[str], where: str) -> Layer:
    """The same of a command that is given word by word, as a container's is."""
    return _assigned(_nested(1, words), where)


def handed_over(words: Sequence[str], where: str, own: Mapping[str, Setting]) -> Layer:
    """What a launcher's ``mpirun -x`` or ``mpiexec -genv`` gives to the ranks.

    ``own``: variables of the launcher, of which ``-x NAME`` hands the value over.
    """
    held, settings = dict(own), dict[str, Setting]()
    for number, told, _ in _nested(1, words):
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


Command = tuple[int, Sequence[str], int]
"""Its line, its words, and within how many shells it stands."""


def _assigned(commands: Iterable[Command], where: str) -> Layer:
    settings: dict[str, Setting] = {}
    untold: dict[str, str] = {}
    sourced: list[str] = []
    lost: list[str] = []
    handing, branch = Handing(), 0
    for number, words, depth in commands:
        at = f"{where}:{number}"
        before_it = branch
        branch = max(0, branch + _opened(words)) if depth == 0 else branch
        inside = before_it or branch or not _ASKS.isdisjoint(words[:1])
        handing.command(words, at, (*settings, *untold), is_inner=depth > 0)
        sourced += [f"{at}: {each}" for each in _sourced(words)]
        lost += _cut(words, at)
        for name, value in _assignments(words):
            before = settings.pop(name, None)
            was_untold = untold.pop(name, None)
            handing.sets(name)
            if inside and (was_untold or (before and before.value != value)):
                untold[name] = at  # which branch is taken nobody knows
            elif value is not None and _OPEN.search(value):
                untold[name] = at
            elif value is not None:
                settings[name] = Setting(value, f"{at}, in a branch" if inside else at)
    for by, names in handing.held_back().items():
        for name in names:
            untold.pop(name, None)
        told = [f"{name}={settings.pop(name).value}" for name in names if name in settings]
        more = f" and {len(told) - 4} more" if told[4:] else ""
        if told:
            shown = f"{', '.join(told[:4])}{more}"
            lost.append(f"{by} hands on only what it names: no rank gets {shown}")
    return Layer(settings, untold=untold, unread=tuple(sourced), lost=tuple(lost))


def _cut(words: Sequence[str], at: str) -> Iterator[str]:
    kept, rest = cut_off(words)
    if rest and is_kept(kept.partition("=")[0]):
        yield (
            f"--export is cut at every comma ({at}): {kept} alone is set, {', '.join(rest)} sets "
            "nothing"
        )


_ASKS: Final = frozenset({"if", "case", "[", "[[", "test"})
"""A line that begins so sets what it sets only where something holds."""

_STARTS: Final = frozenset({"then", "else", "do", "&&", "||", "{", "("})
"""Words behind which a command begins; so does one behind a semicolon."""


def _opened(words: Sequence[str]) -> int:
    """How many ``if`` and ``case`` a line opens, less those that it closes.

    By their ``then`` and ``in``: Python and prose in a script have neither.
    """
    found = 0
    for before, word in pairwise((";", *words)):
        if before.endswith(";") or before in _STARTS:
            name = word.rstrip(";")
            found += name == "then" or (name == "case" and "in" in words)
            found -= name in ("elif", "fi", "esac")
    return found


_NO_SETTINGS: Final = regex(
    r"\.?(?:activate|bashrc|bash_profile|conda|lmod|modules?|profile|set_env|setup-env|setvars)(?:\.\w+)?"
)
"""Files of shells, environments of Python and modules, which are no place for a job's settings."""


def _sourced(words: Sequence[str]) -> Iterator[str]:
    """``source FILE``, where its settings may count."""
    for place, (word, file) in enumerate(pairwise(words)):
        is_dot = word == "." and place == 0
        if (word == "source" or is_dot) and not _NO_SETTINGS.fullmatch(file.rpartition("/")[2]):
            yield f"{word} {file}"


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


_DIRECTIVE: Final = regex(r"(#SBATCH|#PBS|#BSUB|#\$)\s+(.*)")
"""What a scheduler reads: Slurm, PBS, LSF, Grid Engine."""


def _commands(text: str, depth: int = 0) -> Iterator[Command]:
    """The words of each line, by its number, and behind them those of what it gives to a shell."""
    for number, line in enumerate(_joined(text), 1):
        told = line.lstrip()
        directive = _DIRECTIVE.fullmatch(told)
        if told.startswith("#") and directive is None:
            continue
        try:
            # Slurm cuts its own lists outside of quotes: they are kept for it.
            words = shlex.split(
                directive[2] if directive else told,
                comments=True,
                posix=directive is None or directive[1] != DIRECTIVE,
            )
        except ValueError:
            words = told.split()
        yield from _nested(number, [directive[1], *words] if directive else words, depth)


def _nested(number: int, words: Sequence[str], depth: int = 0) -> Iterator[Command]:
    yield number, words, depth
    for flag, word in pairwise(words):
        if depth < NESTED_MOST and re.fullmatch(r"-\w*c", flag) and len(word.split()) > 1:
            for within, inner, deep in _commands(word, depth + 1):
                yield number + within - 1, inner, deep


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
    for flag, word in pairwise(("", *words)):
        option = _ENV_OPTION.match(word)
        name = option[0].rstrip("=") if option else flag
        told = word[option.end() :] if option else word
        for part in _listed(name, told.rstrip(";")):
            match = _ASSIGNED.fullmatch(_IN_CONTAINER.sub("", part.strip().strip("'\"")))
            if match and is_kept(match[1]):
                yield match[1], match[2].strip("'\"") if len(part) < len(told) else match[2]


_ENV_OPTION: Final = regex(r"--export=|--env=|-e(?=[A-Za-z_]\w*=)")
_IN_CONTAINER: Final = regex(r"^(?:SINGULARITY|APPTAINER)ENV_")


def _listed(flag: str, told: str) -> list[str]:
    """The assignments of one word. ``flag``: what stands before it."""
    match flag:
        case "--export" | "-v" | "-env":  # srun, qsub, bsub: a list of names and assignments
            return parts(told)
        case "--env":  # a list for Apptainer, one assignment for Docker, whose value may be a list
            return re.split(r",(?=[A-Za-z_]\w*=)", told)
        case _:
            return [told]


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
