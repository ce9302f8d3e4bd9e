"""Reader and schema agree on what is a playbook, but for what no schema can say."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import jsonschema
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from commcheck.discover import discover
from commcheck.discover import load as load_check
from commcheck.inventory.declared import Notes, Refused
from commcheck.model import Layer
from commcheck.playbook import read_playbook
from commcheck.schema import playbook_schema, waivers_schema
from commcheck.strict_yaml import Items, Node, Pairs, Scalar, compose, read_file
from commcheck.waivers import read_file_of_waivers

HERE = Path(__file__).parent / "playbooks"
FOUND = tuple(
    load_check(path, Layer(path.parent.name)) for path in sorted(HERE.glob("checks/*/*.py"))
)
BEYOND_SCHEMAS = {"order", "duplicate-check"}
"""Rules over several items of a list. All else that is wrong with a playbook, a schema says too."""


def validator(schema: dict[str, Any]) -> Any:
    jsonschema.Draft7Validator.check_schema(schema)
    return jsonschema.Draft7Validator(
        schema, format_checker=jsonschema.Draft7Validator.FORMAT_CHECKER
    )


PLAYBOOKS = validator(playbook_schema(FOUND))
WAIVERS = validator(waivers_schema(FOUND))


def plain(node: Node | None) -> object:
    match node:
        case Scalar():
            return node.value
        case Items():
            return [plain(each) for each in node.nodes]
        case Pairs():
            return {key: plain(value) for key, (_, value) in node.nodes.items()}
        case None:
            return None


def rules(text: str, *, are_waivers: bool = False) -> set[str]:
    """The rules that the reader finds broken."""
    notes = Notes()
    read = read_file_of_waivers if are_waivers else read_playbook
    try:
        read(text, "p.yaml", FOUND, notes)
    except Refused as refused:
        notes.errors.add(refused.problem)
    return {problem.rule for problem in notes.errors}


def data_of(path: Path) -> object:
    """What an editor hands to the schema. Raises ``Refused`` where it is no such YAML at all."""
    notes = Notes()
    node = compose(read_file(path), path.name, notes)
    for problem in notes.errors:
        raise Refused(problem.at, problem.text, problem.rule)
    return plain(node)


@pytest.mark.parametrize("path", sorted(HERE.glob("right/*.yaml")), ids=lambda path: path.stem)
def test_what_is_right(path: Path) -> None:
    assert not list(PLAYBOOKS.iter_errors(data_of(path)))


@pytest.mark.parametrize(
    "path", sorted(HERE.glob("wrong*/*.yaml")), ids=lambda path: f"{path.parent.name}-{path.stem}"
)
def test_what_is_wrong(path: Path) -> None:
    try:
        data = data_of(path)
    except Refused:
        return  # the YAML itself: the corpus of the reader has it
    are_waivers = path.parent.name != "wrong"
    schema = WAIVERS if are_waivers else PLAYBOOKS
    said_by_schemas = rules(path.read_text(), are_waivers=are_waivers) - BEYOND_SCHEMAS
    assert schema.is_valid(data) is not bool(said_by_schemas)


def test_each_wrong_value_is_wrong_to_the_schema_alone() -> None:
    """Of a file with several mistakes, each: the right file with that one value in it."""
    right = plain(compose((HERE / "right" / "all-keys.yaml").read_text(), "p.yaml", Notes()))
    for *where, value in (
        ("name", " "),
        ("forks", 0),
        ("forks", 1.5),
        ("timeout_s", True),
        ("allow", ["load", "load"]),
        ("allow", ["write"]),
        ("thresholds", "network_ratio", "0.9"),
        ("thresholds", "physical.nic-mtu.share", True),
        ("plays", 1, "serial", 0),
        ("plays", 1, "serial", "0%"),
        ("plays", 1, "max_fail", "101%"),
        ("plays", 1, "suspects", "all"),
        ("plays", 1, "checks", 0, "check", "library.env"),
        ("plays", 1, "checks", 0, "check", "physical.nic-mtu"),
        ("plays", 1, "checks", 0, "params", "from_mib", 8.5),
        ("plays", 1, "checks", 0, "params", "steps", 8),
        ("plays", 1, "checks", 0, "timeout_s", 0),
        ("plays", 1, "checks", 0, "when", "accelerator", []),
        ("plays", 1, "checks", 0, "when", "var", {}),
        ("plays", 1, "checks", 0, "when", {}),
        ("plays", 2, "serial", 1),
        ("plays", 2, "checks", []),
        ("plays", 2, "checks", 0, "physical.*"),
        ("plays", 3, "checks", 1, "retries", 6),
        ("plays", 3, "when", "group", [""]),
        ("waivers", 0, "until", "2026-02-30"),
        ("waivers", 0, "reason", "ticket"),
        ("waivers", 0, "check", "physical.reachable"),
    ):
        data = json.loads(json.dumps(right))
        inside: Any = data
        for key in where[:-1]:
            inside = inside[key]
        inside[where[-1]] = value
        assert not PLAYBOOKS.is_valid(data), where
        assert rules(json.dumps(data)) - BEYOND_SCHEMAS, where


# --- any playbook-like thing ---------------------------------------------------------------------

ODD = st.sampled_from([None, True, 0, -1, 3, 2.5, "", " ", "x", "25%", [], {}, ["x"], {"x": 1}])
IDS = [one.id for one in FOUND]


def seldom_odd(right: st.SearchStrategy[Any]) -> st.SearchStrategy[Any]:
    """A right value, or now and then any other."""
    # One of the middle: the ends of a range are drawn far more often.
    return st.integers(0, 40).flatmap(lambda n: ODD if n == 23 else right)


def mostly(*right: object) -> st.SearchStrategy[Any]:
    return seldom_odd(st.sampled_from(right))


def some(required: dict[str, Any], optional: dict[str, Any]) -> st.SearchStrategy[Any]:
    return seldom_odd(st.fixed_dictionaries(required, optional=optional))


NAMES = mostly("gpu", ["gpu", "ib"])
WHEN = some(
    {},
    {
        "group": NAMES,
        "driver": NAMES,
        "accelerator": mostly("nvidia", ["ascend", "none"]),
        "link_layer": mostly("Ethernet"),
        "var": mostly({"a": 1}, {"a": "b", "c": True}),
    },
)
PARAMS = mostly({}, {}, {"share": 0.5}, {"floor_bytes": 3.0}, {"steps": 2}, {"lowest": "1"})


def plays_of(layer: str) -> st.SearchStrategy[Any]:
    ids = [each for each in IDS if each.startswith(layer)]
    check = mostly(*ids, f"{layer}.*")
    entry = some(
        {"check": check},
        {
            "params": PARAMS,
            "when": WHEN,
            "severity": mostly("advisory", "blocking"),
            "retries": mostly(0, 5),
            "timeout_s": mostly(1, 0.5),
        },
    )
    return some(
        {
            "layer": mostly(layer),
            "checks": seldom_odd(st.lists(check | entry, min_size=1, max_size=2)),
        },
        {
            "hosts": mostly("all", "gpu:!x"),
            "gate": mostly("host", "fleet", "none"),
            "serial": mostly(1, "25%", "100%"),
            "suspects": mostly("include"),
            "when": WHEN,
            "thresholds": PARAMS,
        },
    )


PLAY = st.sampled_from([*map(str, Layer)]).flatmap(plays_of)
WAIVER = some(
    {
        "check": mostly(*IDS),
        "hosts": mostly("all"),
        "until": mostly("2026-12-15", "2027-01-01"),
        "reason": mostly("long enough"),
    },
    {"owner": mostly("me")},
)
PLAYBOOK = some(
    {"name": mostly("x"), "plays": seldom_odd(st.lists(PLAY, min_size=1, max_size=2))},
    {
        "allow": mostly(["load"], ["load", "write"], []),
        "forks": mostly(1, 64),
        "thresholds": PARAMS,
        "waivers": seldom_odd(st.lists(WAIVER, max_size=1)),
    },
)


@given(PLAYBOOK)
@settings(max_examples=150)
def test_reader_and_schema_agree_on_anything(data: object) -> None:
    broken = rules(json.dumps(data)) - BEYOND_SCHEMAS
    errors = [error.message for error in PLAYBOOKS.iter_errors(data)]
    assert bool(broken) == bool(errors), (broken, errors)


# --- what editors show ---------------------------------------------------------------------------


def test_editors_are_offered_the_checks_found_and_their_thresholds() -> None:
    definitions = playbook_schema(FOUND)["definitions"]
    assert definitions["runtime-entry"]["properties"]["check"]["enum"] == [
        "runtime.*",
        "runtime.clock-reset",
        "runtime.comm-bound",
        "runtime.train-step",
    ]
    (mtu,) = (
        rule["then"]["properties"]["params"]["properties"]
        for rule in definitions["physical-entry"]["allOf"]
        if rule["if"]["properties"]["check"]["enum"] == ["physical.nic-mtu"]
    )
    assert mtu["floor_bytes"] == {
        "type": "integer",
        "default": 4192,
        "description": "bytes; default 4192 (the test)",
    }


def test_the_schemas_of_the_bundled_checks_are_schemas() -> None:
    bundled = discover(cwd=Path("/"))
    for schema in (playbook_schema(bundled), waivers_schema(bundled)):
        validator(schema)
        assert json.loads(json.dumps(schema)) == schema
