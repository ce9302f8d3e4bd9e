"""What would drain failing hosts: one command for each cause, quoted, and never run."""

from __future__ import annotations

import shlex
from dataclasses import replace

import click
import pytest
from click.testing import CliRunner

from commcheck.options import DRAIN
from commcheck.report.drain import commands
from commcheck.report.text import render
from tests.report.runs import healthy, incident, pfc_fail, plan

SLURM = "scontrol update nodename={hosts} state=drain reason={reason}"


def test_one_command_for_each_cause() -> None:
    assert list(commands(incident(), SLURM)) == [
        "scontrol update nodename='node-[0002-0003]' state=drain "
        "reason='commcheck pfc-not-on-roce-priority'"
    ]


def test_a_word_a_host_for_what_knows_no_brackets() -> None:
    (command,) = commands(incident(), "kubectl cordon {names}")
    assert command == "kubectl cordon node-0002 node-0003"


def test_nothing_fails_nothing_is_drained() -> None:
    assert list(commands(healthy(), SLURM)) == []
    assert list(commands(incident(), "")) == []


def test_a_name_never_leaves_its_quotes() -> None:
    name = "gpu'; reboot; '"
    record = replace(incident(), plan=plan((name,)), results=(pfc_fail(name),))
    for place in ("{hosts}", "{names}"):
        (command,) = commands(record, f"drain {place}")
        assert shlex.split(command) == ["drain", name]


def test_it_stands_below_the_headline() -> None:
    lines = render(incident(), drain=("drain gpu-03",)).splitlines()
    (at,) = [n for n, line in enumerate(lines) if line.startswith("Drain:")]
    assert lines[at] == "Drain:       drain gpu-03"
    (headline,) = [n for n, line in enumerate(lines) if "is where it breaks" in line]
    (first,) = [n for n, line in enumerate(lines) if line.startswith("Fix first:")]
    assert headline < at < first


@pytest.mark.parametrize(
    ("template", "why"),
    [("scontrol {host}", "{host} is no place"), ("scontrol", "it has no place {hosts}")],
)
def test_a_template_without_a_place_for_hosts_is_refused(template: str, why: str) -> None:
    told = CliRunner().invoke(
        click.command()(DRAIN(lambda **_: None)), ["--drain-command", template]
    )
    assert told.exit_code == 2
    assert why in told.output
