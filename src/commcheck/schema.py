"""JSON Schemas of playbooks and of files of waivers, for editors: completion and early errors.

Draft-07, which the YAML language server knows. commcheck itself does not validate with them: the
reader's messages say more. What no schema can say stays with the reader: plays climb, a check
stands once in a play, a key stands once.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any, Final

from commcheck import waivers
from commcheck.check import AnyCheck, LimitSpec, limits_of
from commcheck.check_fields import EFFECTS, WILDCARDS, kind_of, thresholds_by_name
from commcheck.discover import FoundCheck
from commcheck.model import Layer
from commcheck.playbook import (
    ENTRY_KEYS,
    MAX_RETRIES,
    ONLY_WHERE_LOADED,
    PLAY_KEYS,
    PLAYBOOK_KEYS,
)
from commcheck.plays import Gate, Severity, Suspects
from commcheck.when import ACCELERATORS, KEYS, LINK_LAYERS

Schema = dict[str, Any]

_DRAFT: Final = "http://json-schema.org/draft-07/schema#"
_TEXT: Final[Schema] = {"type": "string", "pattern": r"\S"}
_JSON_TYPES: Final = {bool: "boolean", int: "integer", float: "number", str: "string"}


def playbook_schema(found: Sequence[FoundCheck]) -> Schema:
    """The schema of a playbook that uses the checks found."""
    checks = [one.check for one in found]
    properties: Schema = {
        "name": {**_TEXT, "description": "The run's name in reports."},
        "description": _TEXT,
        "forks": _whole(1, description="The most hosts at a time."),
        "timeout_s": _ref("timeout_s"),
        "allow": {
            "type": "array",
            "uniqueItems": True,
            "items": {"enum": [*EFFECTS]},
            "description": "The most that this playbook may ask of a host beyond looking.",
        },
        "thresholds": _ref("thresholds"),
        "plays": {"type": "array", "minItems": 1, "items": _ref("play")},
        "waivers": _ref("waivers"),
    }
    return {
        "$schema": _DRAFT,
        "title": "commcheck playbook",
        **_mapping(properties, PLAYBOOK_KEYS, ("name", "plays")),
        "allOf": [_must_allow(effect, checks) for effect in EFFECTS],
        "definitions": {
            "timeout_s": {
                "type": "number",
                "exclusiveMinimum": 0,
                "description": "Seconds for each command; the nearest of entry, play and playbook.",
            },
            "words": {"anyOf": [_TEXT, {"type": "array", "minItems": 1, "items": _TEXT}]},
            "thresholds": _thresholds(thresholds_by_name(found)),
            "when": _when(),
            "play": _play(checks),
            **_entries_by_layer(checks),
            **_waiver_definitions(found),
        },
    }


def waivers_schema(found: Sequence[FoundCheck]) -> Schema:
    """The schema of a file of waivers."""
    return {
        "$schema": _DRAFT,
        "title": "commcheck waivers",
        **_mapping({"waivers": _ref("waivers")}, ("waivers",), ("waivers",)),
        "definitions": _waiver_definitions(found),
    }


# --- parts --------------------------------------------------------------------------------------


def _ref(name: str) -> Schema:
    return {"$ref": f"#/definitions/{name}"}


def _mapping(properties: Schema, keys: Iterable[str], required: Iterable[str] = ()) -> Schema:
    """A mapping of the reader's very keys, in its order."""
    return {
        "type": "object",
        "additionalProperties": False,
        "required": [*required],
        "properties": {key: properties[key] for key in keys},
    }


def _whole(low: int, high: int | None = None, **more: object) -> Schema:
    top = {} if high is None else {"maximum": high}
    return {"type": "integer", "minimum": low, **top, **more}


def _count(low: int, description: str) -> Schema:
    percent = r"^(100|[1-9]?[0-9])%$" if low == 0 else r"^(100|[1-9][0-9]?)%$"
    return {
        "anyOf": [_whole(low), {"type": "string", "pattern": percent}],
        "description": description,
    }


def _one_or_more(words: Sequence[str]) -> Schema:
    return {
        "anyOf": [
            {"enum": [*words]},
            {"type": "array", "minItems": 1, "items": {"enum": [*words]}},
        ]
    }


def _when() -> Schema:
    scalar = {"type": ["string", "number", "boolean"]}
    properties = {
        "group": _ref("words"),
        "not_group": _ref("words"),
        "accelerator": _one_or_more(ACCELERATORS),
        "link_layer": _one_or_more(LINK_LAYERS),
        "driver": _ref("words"),
        "var": {"type": "object", "minProperties": 1, "additionalProperties": scalar},
    }
    return {**_mapping(properties, KEYS), "minProperties": 1}


def _play(checks: Sequence[AnyCheck]) -> Schema:
    properties = {
        "name": _TEXT,
        "layer": {"enum": [*map(str, Layer)]},
        "hosts": {**_TEXT, "default": "all", "description": "An Ansible pattern."},
        "gate": _words_of(Gate, "What a fail keeps out of the layers above.", Gate.HOST),
        "serial": _count(1, "Hosts at a time."),
        "max_fail": _count(0, "More failing hosts than this end the climb."),
        "suspects": _words_of(Suspects, "Hosts that failed below.", Suspects.EXCLUDE),
        "forks": _whole(1),
        "timeout_s": _ref("timeout_s"),
        "thresholds": _ref("thresholds"),
        "when": _ref("when"),
        "checks": {"type": "array", "minItems": 1},
    }
    by_layer = [
        {
            "if": {"properties": {"layer": {"const": layer.value}}, "required": ["layer"]},
            "then": {"properties": {"checks": {"items": _ref(f"{layer.value}-check")}}},
        }
        for layer in Layer
    ]
    loads = {
        "if": {"anyOf": [{"required": [key]} for key in ONLY_WHERE_LOADED]},
        "then": {"properties": {"checks": {"contains": _names(_with_effect("load", checks))}}},
    }
    return {**_mapping(properties, PLAY_KEYS, ("layer", "checks")), "allOf": [*by_layer, loads]}


def _words_of(
    words: type[Gate] | type[Suspects] | type[Severity], description: str, default: str
) -> Schema:
    return {"enum": [*map(str, words)], "description": description, "default": str(default)}


def _with_effect(effect: str, checks: Sequence[AnyCheck]) -> list[str]:
    return [check.id for check in checks if effect in check.effects]


def _names(ids: Sequence[str]) -> Schema | bool:
    """An item of ``checks`` that names one of the ids, alone or in an entry."""
    if not ids:
        return False
    entry = {"type": "object", "required": ["check"], "properties": {"check": {"enum": [*ids]}}}
    return {"anyOf": [{"enum": [*ids]}, entry]}


def _must_allow(effect: str, checks: Sequence[AnyCheck]) -> Schema:
    play = {
        "type": "object",
        "required": ["checks"],
        "properties": {
            "checks": {"type": "array", "contains": _names(_with_effect(effect, checks))}
        },
    }
    return {
        "if": {
            "required": ["plays"],
            "properties": {"plays": {"type": "array", "contains": play}},
        },
        "then": {
            "required": ["allow"],
            "properties": {"allow": {"type": "array", "contains": {"const": effect}}},
        },
    }


def _entries_by_layer(checks: Sequence[AnyCheck]) -> Schema:
    definitions: Schema = {}
    for layer in Layer:
        here = [check for check in checks if check.layer is layer]
        ids = [f"{layer.value}.*", *(check.id for check in here)]
        definitions[f"{layer.value}-check"] = {
            "anyOf": [{"enum": ids}, _ref(f"{layer.value}-entry")]
        }
        properties: Schema = {
            "check": {"enum": ids},
            "params": {"type": "object"},
            "when": _ref("when"),
            "severity": _words_of(
                Severity, "An advisory check's fail is a warning.", Severity.BLOCKING
            ),
            "retries": _whole(0, MAX_RETRIES, description="How often to ask again after an error."),
            "timeout_s": _ref("timeout_s"),
        }
        limits = {check.id: limits_of(check.limits) for check in here}
        definitions[f"{layer.value}-entry"] = {
            **_mapping(properties, ENTRY_KEYS, ("check",)),
            "allOf": [
                *(_params_of([check_id], specs) for check_id, specs in limits.items() if specs),
                _params_of([each for each in ids if not limits.get(each)], {}),
            ],
        }
    return definitions


def _params_of(ids: Sequence[str], specs: Mapping[str, LimitSpec]) -> Schema:
    given = {"properties": {"check": {"enum": [*ids]}}, "required": ["check"]}
    params = _thresholds({name: [spec] for name, spec in specs.items()})
    return {"if": given, "then": {"properties": {"params": params}}}


def _thresholds(specs: dict[str, list[LimitSpec]]) -> Schema:
    return {
        "type": "object",
        "additionalProperties": False,
        "properties": {
            name: _threshold(each[0])
            if len(each) == 1
            else {"allOf": [_threshold(one) for one in each]}
            for name, each in specs.items()
        },
    }


def _threshold(spec: LimitSpec) -> Schema | bool:
    kind = kind_of(spec)
    if kind is None:
        return False
    about = f"{spec.unit}; default {spec.default} ({spec.source})"
    return {"type": _JSON_TYPES[kind], "default": spec.default, "description": about}


def _waiver_definitions(found: Sequence[FoundCheck]) -> Schema:
    properties = {
        "check": {"enum": [*WILDCARDS, *(one.id for one in found)]},
        "hosts": {**_TEXT, "description": "An Ansible pattern."},
        "until": {
            "type": "string",
            "format": "date",
            "pattern": "^[0-9]{4}-[0-9]{2}-[0-9]{2}$",
            "description": "The last day it holds.",
        },
        "reason": {**_TEXT, "minLength": waivers.MIN_REASON},
        "owner": _TEXT,
    }
    waiver = _mapping(properties, waivers.KEYS, waivers.REQUIRED)
    return {"waiver": waiver, "waivers": {"type": "array", "items": _ref("waiver")}}
