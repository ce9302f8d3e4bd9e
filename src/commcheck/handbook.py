"""The tables of ``docs/``, made from the code that they speak of: a test holds the files to it.

``python -m commcheck.handbook variables > docs/variables.md``, and ``thresholds``, ``root``.
"""

from __future__ import annotations

import shlex
import sys
from collections.abc import Collection, Iterable, Iterator, Mapping
from itertools import groupby
from typing import Any, Final

from commcheck.check import Key, keys_of, limits_of, readings_of
from commcheck.discover import FoundCheck, bundled_folder, discover
from commcheck.inventory.endpoint import CONNECTION
from commcheck.plan import ENGINE_VARIABLES
from commcheck.runbook import anchor

_ENGINE: Final = {
    "commcheck_platform": "gpu-roce, gpu-ib, gpu-efa, gpu-tcp or ascend; undeclared: found out on "
    "the host, but for gpu-tcp: GPUs whose network is TCP, without any RDMA device",
    "commcheck_nics": "HCAs that carry training traffic; undeclared: those next to an accelerator",
    "commcheck_path": "folders with the host's tools, put behind those of PATH",
    "commcheck_thresholds": "limits of checks, by name or as check.name: see thresholds.md",
    "commcheck_peers": "name of the group whose hosts must be alike; undeclared: the deepest group "
    "that says the platform",
    "commcheck_leaf": "leaf switch of the host, a list in rail order, or rail: switch",
    "commcheck_host_key": "the one fingerprint that the host may show, SHA256:...",
    "commcheck_password_env": "environment variable, here, that holds the login's password",
    "commcheck_ssh_agent": "true: the keys of the SSH agent are offered",
    "commcheck_ssh_look_for_keys": "true: the usual keys of ~/.ssh are offered",
    "commcheck_kubectl_node": "Kubernetes node that the host is, for the checks of its hardware",
    "commcheck_kubectl_debug_image": "image of the pod through which a node is asked",
    "commcheck_kubectl_selector": "label selector whose pods are the hosts of the group",
    "commcheck_kubectl_node_selector": "label selector whose nodes are the hosts of the group",
}


def checks() -> tuple[FoundCheck, ...]:
    """The checks that come with commcheck, and no site's."""
    return discover(cwd=bundled_folder("checks"))


# --- variables ----------------------------------------------------------------------------------

_VARIABLES: Final = """\
# Variables of the inventory

Plain variables of an Ansible inventory, set where hosts and groups have theirs. A wrong value is an
error with its file and line before any host is contacted; a name with the prefix `commcheck_` that
nothing reads is a warning with the nearest name. What is not declared has the default of this
table, or is found out on the host. `commcheck run --dry-run` contacts nobody and says what it makes
of an inventory.

<!-- Made by `python -m commcheck.handbook variables`; a test holds the file to it. -->
"""

_FEW: Final = 3
"""Checks that are named one by one."""


def variables() -> str:
    """``docs/variables.md``."""
    readers: dict[str, dict[str, None]] = {}
    keys: dict[str, Key[Any]] = {}
    for one in checks():
        wanted = [*keys_of(one.check.want).values()]
        for key in [*wanted, one.check.opt_in] if one.check.opt_in else wanted:
            keys[key.name] = key
            readers.setdefault(key.name, {})[one.id] = None
    expected = [
        (f"`{name}`", _cell(key.meaning), _default(key), _asked_by(readers[name]))
        for name, key in sorted(keys.items())
        if name not in ENGINE_VARIABLES
    ]
    engine = [(f"`{name}`", _cell(_ENGINE[name])) for name in sorted(ENGINE_VARIABLES)]
    return "\n".join(
        (
            _VARIABLES,
            "## What the fleet should be\n",
            *_table(("variable", "meaning", "default", "asked by"), expected),
            "\n## How hosts are told apart, reached and judged\n",
            *_table(("variable", "meaning"), engine),
            "\n## Variables of Ansible that are read\n",
            "All others are never looked at. Passwords in them are refused.\n",
            *(f"- `{name}`" for name in sorted(CONNECTION)),
            "",
        )
    )


def _asked_by(ids: Collection[str]) -> str:
    return _links(ids) if len(ids) <= _FEW else f"{len(ids)} checks"


def _default(key: Key[Any]) -> str:
    if not key.defaults:
        return "none"
    values = "; ".join(
        f"{_value(value)}{f' {key.unit}' if key.unit else ''}{f' on {on}' if on else ''}"
        for on, value in key.defaults.items()
    )
    return _cell(f"{values} ({key.source})")


def _value(value: object) -> str:
    if isinstance(value, bool):
        return "true" if value else "false"
    return "empty" if value in ((), "") else str(value)


# --- thresholds ---------------------------------------------------------------------------------

_THRESHOLDS: Final = """\
# Thresholds and their sources

Each number by which a check decides, its unit, and where the number comes from. From weak to
strong: this default, a playbook's `thresholds` and `params`, the inventory's
`commcheck_thresholds`. Reports show the value in force and where it was set. A run can be judged
again with other limits and without its hosts: `commcheck judge RUN -i INVENTORY`.

<!-- Made by `python -m commcheck.handbook thresholds`; a test holds the file to it. -->
"""


def thresholds() -> str:
    """``docs/thresholds.md``."""
    rows = [
        (_links([one.id]), f"`{spec.name}`", _value(spec.default), _cell(spec.unit),
         _cell(spec.source))
        for one in checks()
        for spec in limits_of(one.check.limits).values()
    ]  # fmt: skip
    columns = ("check", "threshold", "default", "unit", "source")
    return "\n".join((_THRESHOLDS, *_table(columns, rows), ""))


# --- what runs as root --------------------------------------------------------------------------

_ROOT: Final = """\
# What runs as root

Each command that is asked of a host as root, word for word, and the checks that read it. Where the
login is root they run as they stand, else with `sudo -n`. Where sudo refuses one, its check is
`error` and says so, or reads the same elsewhere; all others are judged. Words in braces are names
of devices, taken only in the form `[A-Za-z0-9_.:-]{1,64}`. Everything else runs as the login, and
with `--become` all of it runs as root.

<!-- Made by `python -m commcheck.handbook root`; a test holds the file to it. -->
"""


def root() -> str:
    """``docs/root.md``."""
    asking: dict[tuple[str, ...], dict[str, None]] = {}
    for one in checks():
        for argv in _as_root(one):
            asking.setdefault(argv, {})[one.id] = None
    plain = [argv for argv in sorted(asking) if argv[0] != "sh"]
    parts = [_ROOT, *(f"- `{shlex.join(argv)}`: {_links(asking[argv])}" for argv in plain)]
    scripts = sorted(asking.keys() - set(plain))
    for number, (script, calls) in enumerate(groupby(scripts, key=lambda argv: argv[2]), 1):
        parts += [f"\n## Script {number}\n", "```sh", script.strip(), "```\n"]
        parts += [
            f"- `sh -c SCRIPT {shlex.join(argv[3:])}`: {_links(asking[argv])}" for argv in calls
        ]
    return "\n".join([*parts, ""])


def _as_root(one: FoundCheck) -> Iterator[tuple[str, ...]]:
    for reading in readings_of(one.check.seen).values():
        for reader in reading.reader.readers:
            yield from (command.argv for command in reader.commands if command.root)


# --- markdown -----------------------------------------------------------------------------------


def _links(ids: Iterable[str]) -> str:
    return ", ".join(f"[`{each}`](../runbook.md#{anchor(each)})" for each in sorted(ids))


def _cell(text: str) -> str:
    return text.replace("|", "\\|")


def _table(columns: tuple[str, ...], rows: Iterable[tuple[str, ...]]) -> Iterator[str]:
    for row in (columns, ("---",) * len(columns), *rows):
        yield f"| {' | '.join(row)} |"


PAGES: Final[Mapping[str, Any]] = {"variables": variables, "thresholds": thresholds, "root": root}

if __name__ == "__main__":
    # Bytes: the file is UTF-8 whatever the terminal is.
    sys.stdout.buffer.write(PAGES[sys.argv[1]]().encode())
