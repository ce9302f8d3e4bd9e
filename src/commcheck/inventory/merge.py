"""From the tree and the files of variables to hosts: precedence, templates, names, platform.

Precedence as in Ansible 2.19, weakest first: variables written in the inventory for ``all``, for
its groups (deeper beats higher, then ``ansible_group_priority``, then the name), then the files
``group_vars/all`` and ``group_vars/<group>`` in the same order, then the host's own, then
``host_vars/<host>``. A value replaces a weaker one whole; mappings are never merged.
"""

from __future__ import annotations

import difflib
from collections.abc import Mapping
from dataclasses import field
from functools import partial
from pathlib import Path

from commcheck.errors import Position
from commcheck.inventory import kubectl
from commcheck.inventory.declared import COMMAND_LINE, Notes, Opaque, Setting, opaque_in, quoted
from commcheck.inventory.endpoint import CONNECTION, PASSWORDS
from commcheck.inventory.templates import Scope, is_template, resolve
from commcheck.inventory.tree import Member, Tree
from commcheck.lazy import dataclass
from commcheck.model import PLATFORMS, Host, Origin

OURS = "commcheck_"
PLATFORM = "commcheck_platform"
Settings = Mapping[str, Setting]


@dataclass(slots=True)
class VariableFiles:
    """What ``group_vars/`` and ``host_vars/`` say, by group and host name."""

    groups: dict[str, dict[str, Setting]] = field(default_factory=dict)
    hosts: dict[str, dict[str, Setting]] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class _Base:
    """What all hosts with the same direct groups share."""

    groups: tuple[str, ...]
    inline: Settings
    platform_group: str


@dataclass(frozen=True, slots=True)
class Surroundings:
    """What templates may name beside variables: the environment, and the files that were read.

    ``sources``: from a file's name, as messages say it, to its absolute path.
    """

    environment: Mapping[str, str] = field(default_factory=dict)
    sources: Mapping[str, Path] = field(default_factory=dict)


def hosts(tree: Tree, files: VariableFiles, notes: Notes, around: Surroundings) -> tuple[Host, ...]:
    """Every host in Ansible's order, variables merged; what is wrong is added to the notes."""
    bases: dict[tuple[str, ...], _Base] = {}
    found = []
    labels: dict[str, str] = {}
    for name in tree.hosts_of("all"):
        member = tree.hosts[name]
        direct = tuple(member.groups)
        if direct not in bases:
            bases[direct] = _base(tree, files, direct)
        base = bases[direct]
        settings = {**base.inline, **member.settings, **files.hosts.get(name, {})}
        variables = {key: setting.value for key, setting in settings.items()}
        scope = Scope(partial(_named, _magic(member, base, around), settings), around.environment)
        for key in _used(settings):
            variables[key] = _read(settings[key], scope, notes)
        label = name.replace(".", "_")
        if (other := labels.setdefault(label, name)) != name:
            notes.error(
                member.at,
                f"host {quoted(name)} would be {label} in JUnit, as host {quoted(other)} is; "
                "rename one",
                "name",
            )
        origins = {key: _origin(setting.at) for key, setting in settings.items()}
        for key, value in kubectl.by_itself(variables).items():
            variables[key], origins[key] = value, Origin("default of pods")
        found.append(
            Host(name, variables, origins, base.groups, _origin(member.at), base.platform_group)
        )
    return tuple(found)


def of_group(tree: Tree, files: VariableFiles, name: str) -> Settings:
    """The variables that hold for the hosts of a group, as far as they say none themselves."""
    return _base(tree, files, (name,)).inline


def _base(tree: Tree, files: VariableFiles, direct: tuple[str, ...]) -> _Base:
    chain = tree.chain(direct)
    merged: dict[str, Setting] = {}
    for group in chain:
        merged |= group.settings
    for group in chain:
        merged |= files.groups.get(group.name, {})
    names = tuple(group.name for group in chain if group.name != "all")
    fixing = [
        group.name
        for group in chain
        if PLATFORM in group.settings or PLATFORM in files.groups.get(group.name, {})
    ]
    return _Base(names, merged, fixing[-1] if fixing else "")


def _used(settings: Settings) -> list[str]:
    return [key for key in settings if key in CONNECTION or key.startswith(OURS)]


def _origin(at: Position) -> Origin:
    return Origin("the command line" if at == COMMAND_LINE else f"{at.path}:{at.line}")


def _magic(member: Member, base: _Base, around: Surroundings) -> Mapping[str, object]:
    """The variables that Ansible sets itself, as far as an inventory can need them."""
    names: dict[str, object] = {
        "inventory_hostname": member.name,
        "inventory_hostname_short": member.name.partition(".")[0],
        "group_names": sorted(base.groups),
    }
    if source := around.sources.get(member.at.path):
        names |= {"inventory_file": str(source), "inventory_dir": str(source.parent)}
    return names


def _named(magic: Mapping[str, object], settings: Settings, name: str) -> object:
    return magic[name] if name in magic else settings[name].value


def _read(setting: Setting, scope: Scope, notes: Notes) -> object:
    """The value of a variable that commcheck uses, templates resolved.

    What cannot be read is an error at once for our own variables. For Ansible's it stays
    ``Opaque``: the host may never be visited, and only then does it matter.
    """
    value = setting.value
    if is_template(value):
        if setting.name in PASSWORDS:
            return Opaque("a template fills it", "password")  # refused where it matters, not read
        value = resolve(value, scope, (setting.name,))
    if not setting.name.startswith(OURS):
        return opaque_in(value) or value
    if unread := opaque_in(value):
        notes.error(setting.at, f"{setting.name}: {unread.why}", unread.rule)
    elif setting.name == PLATFORM:
        _check_platform(setting, value, notes)
    return value


def _check_platform(setting: Setting, value: object, notes: Notes) -> None:
    allowed = (*PLATFORMS, "unknown")
    if value is None or value in allowed:
        return
    near = difflib.get_close_matches(str(value).replace("_", "-").lower(), allowed, 1)
    hint = f"did you mean {near[0]}?" if near else f"wanted one of {', '.join(allowed)}"
    notes.error(setting.at, f"commcheck_platform is {quoted(value)}; {hint}", "platform")
