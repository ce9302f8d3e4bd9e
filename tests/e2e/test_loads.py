"""Plays that load, over SSH on hosts of the embedded fleet: who takes part, and what is told."""

from __future__ import annotations

import contextlib
import io
import json
from collections.abc import Callable, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
import yaml

from commcheck.cli import main
from commcheck.demo import command
from commcheck.demo.fault import known_faults
from commcheck.demo.state import HostState, Running, healthy

LOOKING = ("physical.nic-link-up", "physical.pfc-enabled")


def playbook(folder: Path, *checks: object, **play: object) -> Path:
    path = folder / "wire.yaml"
    plays = [
        {"layer": "physical", "checks": list(LOOKING)},
        {"name": "wire", "layer": "physical", "checks": list(checks), **play},
    ]
    path.write_text(yaml.safe_dump({"name": "wire", "allow": ["load"], "plays": plays}))
    return path


def climb(states: Sequence[HostState], book: Path, out: Path, *words: str) -> list[dict[str, Any]]:
    """The verdicts of a climb on the hosts that may load, over SSH."""
    given = [str(book), "--out", str(out), "--allow", "load", "--format", "json", *words]
    context = main.commands["demo"].make_context("demo", given)
    options = dict(context.params)
    for name in ("hosts", "faults", "personas"):
        del options[name]
    said = io.StringIO()
    with contextlib.redirect_stdout(said):
        command.climb(list(states), (), sources={}, **options)
    found: list[dict[str, Any]] = json.loads(said.getvalue())["verdicts"]
    return found


def of(verdicts: Sequence[dict[str, Any]], check: str) -> dict[str, tuple[str, str]]:
    """Status and reason by subject."""
    return {
        each["subject"]: (f"{each['status']} {each['kind']}".strip(), each["reason"])
        for each in verdicts
        if each["check"] == f"physical.{check}"
    }


@pytest.fixture
def states() -> list[HostState]:
    hosts = [healthy(number) for number in range(1, 7)]
    hosts[2] = known_faults()["pfc-off"].change(hosts[2])
    return hosts


@pytest.mark.slow
def test_a_host_that_failed_below_and_a_busy_one_take_no_part(
    states: list[HostState], tmp_path: Path
) -> None:
    job = Running(4711, "python3", 31337, 71234)
    states[4] = replace(states[4], running=(job,))
    book = playbook(tmp_path, "physical.collective-node", "physical.collective-pairs")
    verdicts = climb(states, book, tmp_path / "reports")
    pairs = of(verdicts, "collective-pairs")
    assert {host: status for host, (status, _) in pairs.items()} == {
        "@all": "pass",
        "gpu-01": "pass",
        "gpu-02": "pass",
        "gpu-03": "skip gated",
        "gpu-04": "pass",
        "gpu-05": "skip busy",
        "gpu-06": "pass",
    }
    assert "physical.pfc-enabled failed on this host" in pairs["gpu-03"][1]
    assert "python3 (pid 4711 of uid 31337, 71234 MiB)" in pairs["gpu-05"][1]
    assert "95% of 200 GB/s (4 NICs x 400 Gb/s / 8" in pairs["gpu-01"][1]
    node = of(verdicts, "collective-node")
    assert "102% of 470 GB/s" in node["gpu-01"][1]
    assert node["gpu-05"][0] == "skip busy"
    (run,) = (each for each in (tmp_path / "reports").glob("2*") if each.is_dir())
    frames = {path.stem: path.read_text() for path in (run / "frames").iterdir()}
    assert " run " not in frames["gpu-03"] + frames["gpu-05"]
    junit = (run / "junit" / "TEST-commcheck-physical.xml").read_text()
    assert "python3 (pid 4711" in junit.partition("<skipped")[2]


@pytest.mark.slow
def test_suspects_confirm_the_cause_and_are_its_consequence(
    states: list[HostState], tmp_path: Path
) -> None:
    book = playbook(tmp_path, "physical.collective-pairs", suspects="include")
    out = tmp_path / "reports"
    verdicts = climb(states, book, out)
    pairs = of(verdicts, "collective-pairs")
    assert {host for host, (status, _) in pairs.items() if status != "pass"} == {"@all", "gpu-03"}
    for subject in ("@all", "gpu-03"):
        status, reason = pairs[subject]
        assert status == "skip blocked"
        assert reason.startswith("consequence of physical.pfc-enabled (pfc-off) on gpu-03")
        assert "meanwhile out_of_sequence +" in reason
    failed = {each["check"] for each in verdicts if each["status"] == "fail"}
    assert failed == {"physical.pfc-enabled"}
    # Judged again from what is stored, without a host: the same.
    with contextlib.redirect_stdout(io.StringIO()) as said:
        main(["judge", "last", "--out", str(out), "--format", "json"], standalone_mode=False)
    assert of(json.loads(said.getvalue())["verdicts"], "collective-pairs") == pairs


@pytest.mark.slow
def test_batches_end_where_too_many_fail(states: list[HostState], tmp_path: Path) -> None:
    links = (26.562,) * 6 + (None,) * 12
    states[0] = states[0].gpu(0, lambda gpu: replace(gpu, links_gbytes=links))
    book = playbook(tmp_path, "physical.collective-node", serial=2, max_fail=0)
    node = of(climb(states, book, tmp_path / "reports"), "collective-node")
    status = {host: each for host, (each, _) in node.items()}
    assert (status["gpu-01"], status["gpu-02"]) == ("fail", "pass")
    assert {status[host] for host in ("gpu-03", "gpu-04", "gpu-05", "gpu-06")} == {"skip gated"}


# --- the object at fault, among 17 hosts ----------------------------------------------------------


def slow_slots(host: HostState, *rails: int) -> HostState:
    """A host of which these rails, or all, sit in slots of half the width."""
    for rail in rails or range(len(host.nics)):
        host = host.nic(rail, lambda nic: replace(nic, pcie_width=8))
    return host


@pytest.mark.slow
@pytest.mark.timeout(300)
@pytest.mark.parametrize(
    ("plan", "change", "culprit"),
    [
        ("pairs", slow_slots, "host gpu-05"),
        ("pairs", lambda host: slow_slots(host, 2), "host gpu-05 rail 2"),
        (
            "circle",
            lambda host: replace(host, slow_to=frozenset({14})),
            "path gpu-05 - gpu-14",
        ),
    ],
    ids=["host", "rail", "path"],
)
def test_of_17_hosts_exactly_what_is_bad_is_named(
    plan: str, change: Callable[[HostState], HostState], culprit: str, tmp_path: Path
) -> None:
    states = [healthy(number) for number in range(1, 18)]
    states[4] = change(states[4])
    check = {"check": "physical.collective-pairs", "params": {"plan": plan}}
    pairs = of(climb(states, playbook(tmp_path, check), tmp_path / "reports"), "collective-pairs")
    status, reason = pairs.pop("@all")
    assert (status, reason.partition(":")[0]) == ("fail", culprit)
    assert plan == "pairs" or "136 of 136 paths exercised" in reason
    failed = {host for host, (each, _) in pairs.items() if each != "pass"}
    assert failed == ({"gpu-05"} if culprit.startswith("host") else set())
    assert len(pairs) == 17


@pytest.mark.slow
def test_a_rail_that_does_not_reach_its_peers(states: list[HostState], tmp_path: Path) -> None:
    """Links are up everywhere; one port is in another VLAN, behind another large packets end."""
    known = known_faults()
    states[2] = known["path-mtu-1500"].change(healthy(3))
    states[4] = known["rail-vlan-wrong"].change(states[4])
    book = playbook(tmp_path, "physical.rail-reach")
    verdicts = climb(states, book, tmp_path / "reports")
    reach = of(verdicts, "rail-reach")
    assert {host for host, (status, _) in reach.items() if status == "fail"} == {
        "@all",
        "gpu-03",
        "gpu-05",
    }
    assert {reach[f"gpu-{number:02d}"][0] for number in (1, 2, 4, 6)} == {"pass"}
    causes = {each["subject"]: each["cause"] for each in verdicts if each["status"] == "fail"}
    assert causes["gpu-03"] == "rail-path-mtu"
    assert causes["gpu-05"] == "rail-unreached"
    assert "host gpu-05 rail 1" in reach["gpu-05"][1]
    assert "4200 bytes" in reach["gpu-01"][1]


def test_what_loads_another_platform_is_not_launched_on_hosts_that_declare_none(
    tmp_path: Path,
) -> None:
    hosts = [replace(healthy(number), declared=()) for number in (1, 2)]
    book = playbook(tmp_path, "physical.npu-reach")
    told = of(climb(hosts, book, tmp_path), "npu-reach")
    other = ("skip not-applicable", "not applicable: platform is gpu-roce")
    assert told == {"gpu-01": other, "gpu-02": other}
