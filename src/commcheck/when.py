"""``when``: the fixed conditions under which a playbook asks a check. All must hold."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping
from dataclasses import field
from typing import Final

from commcheck.errors import Position
from commcheck.fields import Fields
from commcheck.lazy import dataclass
from commcheck.model import Host, Machine, Rail, Subject
from commcheck.strict_yaml import Node, Plain, Scalar

KEYS: Final = ("group", "not_group", "accelerator", "link_layer", "driver", "var")
ACCELERATORS: Final = ("nvidia", "ascend", "none")
LINK_LAYERS: Final = ("Ethernet", "InfiniBand")

_VENDOR: Final[Mapping[str, str]] = {
    "gpu-roce": "nvidia",
    "gpu-ib": "nvidia",
    "gpu-efa": "nvidia",
    "gpu-tcp": "nvidia",
    "ascend": "ascend",
}


@dataclass(frozen=True, slots=True)
class When:
    """Conditions on host, hardware and inventory; an empty one always holds.

    Of several words one is enough; of several conditions, all are wanted.
    """

    position: Position
    group: tuple[str, ...] = ()
    not_group: tuple[str, ...] = ()
    accelerator: tuple[str, ...] = ()
    link_layer: tuple[str, ...] = ()
    driver: tuple[str, ...] = ()
    var: Mapping[str, Plain] = field(default_factory=dict)

    def not_applicable(self, host: Host, machine: Machine, subject: Subject) -> str | None:
        """The first condition that does not hold, for a report; None: all hold.

        What is not known refuses nothing: a port whose link layer cannot be read, or a GPU that
        fell off the bus, must stay in the report.
        """
        groups = {"all", *(host.groups or ("ungrouped",))}
        if self.group and not groups & set(self.group):
            return f"when group is {_words(self.group)}"
        if unwanted := [each for each in self.not_group if each in groups]:
            return f"when group is not {_words(unwanted)}"
        vendors = _vendors(machine)
        if self.accelerator and not vendors & set(self.accelerator):
            wanted = _words(self.accelerator)
            return f"when accelerator is {wanted}, and here is {_words(sorted(vendors))}"
        rails = (subject,) if isinstance(subject, Rail) else machine.rails
        for name, wanted_words, seen in (
            ("link_layer", self.link_layer, {rail.link_layer for rail in rails}),
            ("driver", self.driver, {rail.driver for rail in rails}),
        ):
            if reason := _other_than(name, wanted_words, seen):
                return reason
        for name, value in self.var.items():
            if not _same(host.variables.get(name), value):
                return f"when var {name} is {value}"
        return None


def _vendors(machine: Machine) -> set[str]:
    seen = {accelerator.vendor for accelerator in machine.accelerators}
    if machine.platform in _VENDOR:
        seen.add(_VENDOR[machine.platform])
    return seen or {"none"}


def _other_than(name: str, wanted: Collection[str], seen: Collection[str | None]) -> str | None:
    known = {word for word in seen if word is not None}
    if not wanted or not known or None in seen or known & set(wanted):
        return None
    return f"when {name} is {_words(wanted)}, and here is {_words(sorted(known))}"


def _same(given: object, wanted: Plain) -> bool:
    if isinstance(given, bool) or isinstance(wanted, bool):
        return given is wanted
    # Values of INI inventories may come as text, so "3" is as good as 3.
    return given == wanted or (isinstance(given, str) and given == str(wanted))


def _words(words: Iterable[str]) -> str:
    return " or ".join(words)


def read_when(fields: Fields, node: Node) -> When | None:
    """The conditions of a play or entry; None, and errors noted, where they are none."""
    keys = fields.mapping(node, "when", KEYS, may_be_empty=False)
    if keys is None:
        return None
    words: dict[str, tuple[str, ...]] = {
        name: fields.texts(keys[name], name)
        for name in ("group", "not_group", "driver")
        if name in keys
    }
    for name, allowed in (("accelerator", ACCELERATORS), ("link_layer", LINK_LAYERS)):
        if name in keys:
            words[name] = fields.choices(keys[name], name, allowed, "when")
    return When(node.at, **words, var=_variables(fields, keys["var"]) if "var" in keys else {})


def _variables(fields: Fields, node: Node) -> dict[str, Plain]:
    wanted: dict[str, Plain] = {}
    for name, (_, value) in fields.free_mapping(node, "var", may_be_empty=False).items():
        if isinstance(value, Scalar) and value.value is not None:
            wanted[name] = value.value
        else:
            fields.mistyped(value, f"var {name}", "a text, a number, true or false")
    return wanted
