"""How hosts are reached, as the words that a run keeps for one that goes on from it. Pure.

Files and names only: what is secret is in neither.
"""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any, Final

Words = Mapping[str, tuple[str, ...]]

_MANY: Final = ("known_hosts", "key_files")
_CARRIED: Final = (*_MANY, "ssh_config", "host_keys", "user", "agent", "become")


def words_of(reach: Mapping[str, object]) -> dict[str, tuple[str, ...]]:
    """The settings that the operator made, by name; those left alone are not in it."""
    given = ((name, reach.get(name)) for name in _CARRIED)
    return {
        name: tuple(map(str, value)) if isinstance(value, tuple) else (str(value),)
        for name, value in given
        if value
    }


def settings_of(words: Words) -> dict[str, Any]:
    """The settings that ``words_of`` made the words of."""
    return {name: _setting(name, told) for name, told in words.items() if told}


def of_run(words: Words) -> dict[str, tuple[str, ...]]:
    """Of all the words that a run keeps, those on how its hosts were reached."""
    return {name: words[name] for name in _CARRIED if name in words}


def _setting(name: str, told: tuple[str, ...]) -> object:
    if name in _MANY:
        return tuple(map(Path, told))
    if name == "ssh_config":
        return Path(told[0])
    return told[0] if name in ("host_keys", "user") else told == ("True",)
