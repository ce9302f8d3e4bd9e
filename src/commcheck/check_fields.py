"""Fields whose right values follow from the checks found: check ids, and thresholds by name."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from typing import Final

from commcheck.check import AnyCheck, LimitSpec, limits_of
from commcheck.discover import FoundCheck
from commcheck.errors import Position
from commcheck.fields import Fields, near, number, whole_number
from commcheck.inventory.declared import quoted
from commcheck.model import Layer, Origin, Wanted
from commcheck.strict_yaml import Node, Plain, Scalar

EFFECTS: Final = ("load", "write")
"""What a check may do to a host beyond looking."""

WILDCARDS: Final = tuple(f"{layer.value}.*" for layer in Layer)
"""Each stands for every check of its layer that only looks."""

Params = Mapping[str, Wanted[object]]
"""Thresholds by name, each with the place that set it."""

_KINDS: Final[Mapping[type, str]] = {
    bool: "true or false",
    int: "a whole number",
    float: "a number",
    str: "a text",
}


def check_name(fields: Fields, node: Node, ids: Collection[str], name: str) -> str | None:
    """The id of a check that exists, or ``<layer>.*``."""
    given = fields.text(node, name)
    if given is None or given in ids or given in WILDCARDS:
        return given
    hint = near(given, [*ids, *WILDCARDS])
    fields.wrong(node.at, f"no check {quoted(given)}{hint}", "unknown-check")
    return None


def thresholds_by_name(checks: Sequence[FoundCheck]) -> dict[str, list[LimitSpec]]:
    """Every threshold as ``name``, for all checks that have it, and as ``<check id>.name``."""
    specs: dict[str, list[LimitSpec]] = {}
    for one in checks:
        for name, spec in limits_of(one.check.limits).items():
            specs.setdefault(name, []).append(spec)
            specs[f"{one.id}.{name}"] = [spec]
    return specs


def read_params(
    fields: Fields,
    node: Node,
    name: str,
    specs: Mapping[str, Sequence[LimitSpec]],
    nobody_has: str,
) -> Params:
    """Values by threshold name, each of the type of its default.

    ``nobody_has`` begins the message of an unknown one: "no check has", "... has not".
    """
    params: dict[str, Wanted[object]] = {}
    for key, (at, value_node) in fields.free_mapping(node, name).items():
        if key not in specs:
            hint = near(key, specs)
            fields.wrong(at, f"{name}: {nobody_has} the threshold {quoted(key)}{hint}", "params")
            continue
        values = [_typed(fields, value_node, key, spec) for spec in specs[key]]
        if values[0] is not None:
            params[key] = Wanted(values[0], _origin(at))
    return params


def _origin(at: Position) -> Origin:
    return Origin(f"{at.path}:{at.line}")


def params_of(check: AnyCheck, *levels: Params) -> Params:
    """What is set for a check, the last level that says something winning.

    In one level ``<check id>.name`` is nearer than ``name``.
    """
    mine: dict[str, Wanted[object]] = {}
    for level in levels:
        for name, spec in limits_of(check.limits).items():
            given = level.get(f"{check.id}.{name}", level.get(name))
            if given is not None:
                mine[name] = Wanted(as_type(spec.default, given.value), given.origin)
    return mine


def _typed(fields: Fields, node: Node, name: str, spec: LimitSpec) -> object:
    """The value as the default's type, or None and an error noted."""
    if kind_of(spec) is None:
        fields.wrong(node.at, f"{name}: cannot be set in a playbook", "params")
        return None
    value = as_type(spec.default, node.value) if isinstance(node, Scalar) else None
    if value is None:
        fields.mistyped(node, name, f"{_KINDS[type(spec.default)]} ({spec.unit})")
    return value


def kind_of(spec: LimitSpec) -> type | None:
    """The type of value that may be set: bool, int, float or str; None: not from a playbook."""
    return type(spec.default) if type(spec.default) in _KINDS else None


def as_type(default: object, value: object) -> object | None:
    """The value as the default's type, None where it is none. ``3.0`` is a whole number."""
    if not isinstance(value, Plain):
        return None
    if isinstance(default, bool):
        return value if isinstance(value, bool) else None
    if isinstance(default, int):
        return whole_number(value)
    if isinstance(default, float):
        return number(value)
    return value if isinstance(value, str) else None
