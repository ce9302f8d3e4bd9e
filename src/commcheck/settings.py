"""The configuration file: defaults for options, from the project and from the user.

Option and environment are stronger, then ``--config FILE``, then ``commcheck.toml`` in this folder
or one above it up to the repository's, then ``$XDG_CONFIG_HOME/commcheck/config.toml``.
"""

from __future__ import annotations

import difflib
import os
import re
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path
from typing import Any, Final

import click

from commcheck.errors import UsageError
from commcheck.files import read_whole
from commcheck.lazy import dataclass
from commcheck.trust import distrusted

NAME: Final = "commcheck.toml"
HOOKS: Final = "hooks"
"""The table of the chat robots and webhooks that ``--notify`` names."""

_BYTES_MOST: Final = 1 << 20

NOT_IN_A_FILE: Final = frozenset(
    {"help", "config", "dry-run", "resume", "again", "shard", "hosts", "fault", "version"}
)
"""Options that are about one run and no other."""


@dataclass(frozen=True, slots=True)
class Setting:
    """A value of a file, and where it stands."""

    key: str
    value: Any
    path: str
    line: int
    folder: Path

    def beside(self, name: Any) -> Any:
        """A path of the file as it is meant: from the file's folder on, ``~`` being the user's."""
        if not isinstance(name, str) or "," in name or name.startswith("exec:"):
            return name
        return str(self.folder / Path(name).expanduser())

    @property
    def place(self) -> str:
        """``commcheck.toml:3``."""
        return f"{self.path}:{self.line}"


def settings(explicit: Path | None, cwd: Path, known: Iterable[str]) -> dict[str, Setting]:
    """The values of all files, the strongest of each key. ``known``: keys there may be.

    Raises ``UsageError`` with a line for each key that is unknown, for a file that is no TOML, and
    for one that was found and is another user's, or lies where everybody may write.
    """
    names = sorted({*known, HOOKS} - NOT_IN_A_FILE)
    found: dict[str, Setting] = {}
    problems: list[str] = []
    for path in _files(explicit, cwd):
        for setting in _read(path, cwd):
            if setting.key not in names:
                problems.append(f"{setting.place}: error: {_unknown(setting.key, names)}")
            found.setdefault(setting.key, setting)
    if problems:
        raise UsageError(*problems)
    return found


def for_command(
    command: click.Command, found: Mapping[str, Setting]
) -> tuple[dict[str, Any], dict[str, Setting]]:
    """Defaults of a command by parameter, as click takes them, and the settings they come from.

    Raises ``UsageError`` for a value that the option refuses.
    """
    values: dict[str, Any] = {}
    used: dict[str, Setting] = {}
    problems = []
    for option in command.params:
        setting = next((found[key] for key in keys_of(option) if key in found), None)
        if setting is None or option.name is None:
            continue
        value = [setting.value] if not isinstance(setting.value, list) else setting.value
        if _is_path(option):
            value = [setting.beside(each) for each in value]
        if not option.multiple and option.nargs == 1 and not isinstance(setting.value, list):
            value = value[0]
        try:
            option.type_cast_value(click.Context(command), value)
        except (click.BadParameter, TypeError) as error:
            told = error.message if isinstance(error, click.BadParameter) else str(error)
            problems.append(f"{setting.place}: error: {setting.key}: {told} [type]")
            continue
        values[option.name] = value
        used[option.name] = setting
    if problems:
        raise UsageError(*problems)
    return values, used


def keys_of(option: click.Parameter) -> Iterator[str]:
    """The long names of an option without their dashes."""
    if isinstance(option, click.Option):
        yield from (name[2:] for name in option.opts if name.startswith("--"))


def _is_path(option: click.Parameter) -> bool:
    return isinstance(option.type, click.Path) or option.name == "inventory"


# --- files --------------------------------------------------------------------------------------


def _files(explicit: Path | None, cwd: Path) -> Iterator[Path]:
    if explicit is not None:
        explicit = cwd / explicit
        if not explicit.is_file():
            raise UsageError(f"{explicit}: error: no such configuration file [config]")
        yield explicit
    for folder in (cwd, *cwd.parents):
        path = folder / NAME
        if path.is_file():
            if explicit is None or not path.samefile(explicit):
                _refuse_distrusted(path)
                yield path
            break
        if (folder / ".git").exists():
            break
    base = os.environ.get("XDG_CONFIG_HOME") or "~/.config"
    path = Path(base).expanduser() / "commcheck" / "config.toml"
    if path.is_file():
        _refuse_distrusted(path)
        yield path


def _refuse_distrusted(path: Path) -> None:
    """A stranger's file must not decide where our keys go."""
    for each in (path, path.parent):
        if why := distrusted(each):
            raise UsageError(
                f"{path}: error: {why}, so it is not read; name the file with --config to have it "
                "read all the same [config]"
            )


def _read(path: Path, cwd: Path) -> Iterator[Setting]:
    import tomllib

    shown = str(path.relative_to(cwd)) if path.is_relative_to(cwd) else str(path)
    try:
        text = read_whole(path, _BYTES_MOST).decode()
        table = tomllib.loads(text)
    except OSError as error:
        raise UsageError(f"{path}: error: cannot be read: {error.strerror} [config]") from error
    except (ValueError, RecursionError) as error:
        at = re.search(r"\(at line (\d+), column (\d+)\)", str(error))
        place = f"{shown}:{at[1]}:{at[2]}" if at else shown
        what = str(error).partition(" (at line")[0]
        raise UsageError(f"{place}: error: no TOML: {what} [config]") from error
    for key, value in table.items():
        folder = path.parent.relative_to(cwd) if path.parent.is_relative_to(cwd) else path.parent
        yield Setting(key, value, shown, _line_of(key, text), folder)


def _line_of(key: str, text: str) -> int:
    """The line of a top-level key or table; 1 where it cannot be told."""
    word = rf"""(?:{re.escape(key)}|"{re.escape(key)}"|'{re.escape(key)}')"""
    wanted = re.compile(rf"\s*(?:{word}\s*[=.]|\[+\s*{word}\s*[.\]])")
    for number, line in enumerate(text.split("\n"), start=1):
        if wanted.match(line):
            return number
    return 1


def _unknown(key: str, known: Iterable[str]) -> str:
    near = difflib.get_close_matches(key.replace("_", "-"), list(known), 1, 0.6)
    hint = f" (did you mean '{near[0]}'?)" if near else ""
    return f"no setting '{key}'{hint} [unknown-setting]"
