"""What every check of the checks folder keeps to, whoever writes it."""

from __future__ import annotations

import re
from collections import Counter
from pathlib import Path

import pytest

from commcheck.check import EveryRail, Unread, keys_of, limits_of, readings_of
from commcheck.command import Command
from commcheck.discover import FoundCheck, in_order_of_needs, load
from commcheck.errors import Unjudgeable
from commcheck.model import (
    PLATFORMS,
    Accelerator,
    Cause,
    Host,
    Layer,
    Machine,
    Rail,
    Status,
    Words,
)

ROOT = Path(__file__).parents[2]
FILES = [
    (layer, path)
    for layer in Layer
    for path in sorted((ROOT / "checks" / layer.value).glob("[!_]*.py"))
]
FOUND = [load(path, layer) for layer, path in FILES]
CHECKS = {one.id: one.check for one in FOUND}
CAUSES = [(one, cause) for one in FOUND for cause in one.check.causes]

SLUG = re.compile(r"[a-z0-9]+(-[a-z0-9]+)*")
CHINESE = re.compile(r"[\u4e00-\u9fff]")
NVIDIAS = {"mlnx_qos", "mlxconfig", "mlxlink", "mlxreg"}
WHO = {"operator", "network team", "vendor", "security owner"}

each_check = pytest.mark.parametrize("one", FOUND, ids=lambda one: one.path.stem)


def words(text: Words) -> None:
    assert text.en.strip() == text.en != ""
    assert CHINESE.search(text.zh)
    assert not CHINESE.search(text.en)


def test_there_are_checks_and_ids_are_unique() -> None:
    assert FOUND
    assert len(CHECKS) == len(FOUND)


@each_check
def test_file_id_and_docstring(one: FoundCheck) -> None:
    layer, _, noun = one.id.partition(".")
    assert layer == one.path.parent.name
    assert SLUG.fullmatch(noun)
    assert one.path.stem == noun.replace("-", "_")
    first, *_ = one.doc.split("\n\n")
    assert first.endswith(".")
    for label in ("Why: ", "Reads: ", "By hand: "):
        assert re.search(rf"^{label}", one.doc, re.MULTILINE), label
    assert len(one.check.title.en) <= 40
    words(one.check.title)


@each_check
def test_needs_exist_in_the_same_layer(one: FoundCheck) -> None:
    for need in one.check.needs:
        assert CHECKS[need].layer is one.check.layer
    assert one.check.platforms <= {*PLATFORMS, "unknown"}


def test_needs_go_in_no_circle() -> None:
    assert len(in_order_of_needs(CHECKS.values())) == len(CHECKS)


OF_THE_RAIL = {
    f"physical.{name}"
    for name in ("nic-mtu", "cma-roce-mode", "bluefield-mode", "roce-congestion", "pcie-errors")
}
"""These read what is the bond's own, the RDMA device's, or the whole card's."""


@each_check
def test_what_belongs_to_a_port_is_asked_of_each_port_of_a_bond(one: FoundCheck) -> None:
    reads_port = one.check.subject is Rail and any(
        "{netdev}" in word or "{pci}" in word
        for reading in readings_of(one.check.seen).values()
        for reader in reading.reader.readers
        for command in reader.commands
        for word in command.argv
    )
    assert one.check.each_port == (reads_port and one.id not in OF_THE_RAIL)


@each_check
def test_limits_and_expectations_have_sources(one: FoundCheck) -> None:
    for spec in limits_of(one.check.limits).values():
        assert spec.source
        assert spec.unit
    for key in keys_of(one.check.want).values():
        assert key.name.startswith("commcheck_")
        assert key.meaning
        assert key.source or not key.defaults


@each_check
def test_commands_are_words(one: FoundCheck) -> None:
    for reading in readings_of(one.check.seen).values():
        for reader in reading.reader.readers:
            for command in reader.commands:
                assert isinstance(command, Command)
                words = command.argv
                if words[:2] == ("sh", "-c"):  # a fixed script: nothing is put into it
                    assert not re.search(r"\{\w+\}", words[2])
                    words = words[3:]
                assert all(word and not re.search(r"[\s;|&$`<>]", word) for word in words)
                assert 0 < command.timeout_s <= 600


@each_check
def test_every_cause_in_the_file_is_declared(one: FoundCheck) -> None:
    """A judge can only name causes of its module, so these are all it may find."""
    assert _names(one).keys() == {id(cause) for cause in one.check.causes}


def test_slugs_are_unique_and_stable_in_form() -> None:
    # Checks that launch share causes: each counts once.
    slugs = Counter(cause.slug for cause in {id(cause): cause for _, cause in CAUSES}.values())
    assert [slug for slug, count in slugs.items() if count > 1] == []
    assert all(SLUG.fullmatch(slug) for slug in slugs)


@pytest.mark.parametrize(("one", "cause"), CAUSES, ids=lambda each: getattr(each, "slug", ""))
def test_cause_has_words_and_remedies(one: FoundCheck, cause: Cause) -> None:
    words(cause.title)
    words(cause.meaning)
    assert cause.remedies
    for remedy in cause.remedies:
        words(remedy.effect)
        words(remedy.precondition)
        assert remedy.who in WHO
        if one.check.subject is Rail and remedy.command.partition(" ")[0] in NVIDIAS:
            assert remedy.driver == "mlx5_core"


@each_check
def test_every_cause_is_tested(one: FoundCheck) -> None:
    test = ROOT / "tests" / "checks" / one.path.parent.name / f"test_{one.path.stem}.py"
    text = test.read_text()
    names = _names(one)
    for cause in one.check.causes:
        assert re.search(rf"\b{names[id(cause)]}\b", text), cause.slug


@each_check
def test_where_nothing_could_be_read_nothing_passes(one: FoundCheck) -> None:
    """Required readings are the engine's to refuse; what is optional, a judge must not wave by."""
    check = one.check
    readings = readings_of(check.seen)
    if not readings or any(reading.required for reading in readings.values()):
        return
    unread = Unread("not there", "CommandMissing")
    rail = Rail(0, "mlx5_0", netdev="eth0", link_layer="Ethernet", state="ACTIVE", fabric=True)
    gpu = Accelerator(0, "nvidia")
    platform = min(check.platforms - {"unknown"})
    machine = Machine("gpu-01", platform, rails=(rail,), accelerators=(gpu,))
    subject = {Machine: machine, Rail: rail, Accelerator: gpu}[check.subject]
    seen = check.seen(
        **{
            name: EveryRail({rail.label: unread}) if reading.every_rail else unread
            for name, reading in readings.items()
        }
    )
    want = {name: key.on(Host("gpu-01"), platform) for name, key in keys_of(check.want).items()}
    try:
        verdicts = check.verdicts(seen, subject, check.want(**want), check.limits())
    except Unjudgeable:
        return
    assert all(verdict.status in (Status.SKIP, Status.ERROR) for verdict in verdicts)


def _names(one: FoundCheck) -> dict[int, str]:
    """Causes of a check's module, each by its own name or by that of the tuple it stands in."""
    found: dict[int, str] = {}
    for name, value in one.check.judge.__globals__.items():
        for each in value if isinstance(value, tuple) else (value,):
            if isinstance(each, Cause):
                found[id(each)] = name
    return found
