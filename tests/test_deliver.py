"""Reports leave by one door: hooks are told of what is new, in the language of the reader."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path

import click
import pytest

from commcheck.deliver import Delivery, look_of
from commcheck.options import LANG, NOTIFY
from commcheck.report import events
from commcheck.report.folder import RunFolder
from commcheck.report.hooks import Hook
from commcheck.report.lines import NO_EDGE
from commcheck.report.record import Record
from tests.report.runs import healthy, incident


def delivered(base: Path, record: Record, hook: Hook, run_id: str) -> None:
    record = replace(record, info=replace(record.info, run_id=run_id))
    folder = RunFolder.create(base, run_id)
    for event in events.events_of(record):
        folder.event(event)
    Delivery(out=base, form="hosts", lang="zh", notify=(hook,)).deliver(record, folder)


def test_a_hook_is_told_once_of_what_stays_the_same(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    told: list[str] = []

    def send(hook: Hook, record: Record) -> str:
        told.append(record.info.run_id)
        return f"hook {hook.name}: gone"

    monkeypatch.setattr("commcheck.report.hooks.send", send)
    hook = Hook("oncall", "slack", "https://x.example")
    runs = [f"2026112{day}T000000Z-0000" for day in range(5)]
    for run_id, record in zip(
        runs, (incident(), incident(), healthy(), healthy(), incident()), strict=True
    ):
        record = replace(record, info=replace(record.info, playbook="p", limit=""))
        delivered(tmp_path, record, hook, run_id)
    assert told == [runs[0], runs[2], runs[4]]
    said = capsys.readouterr()
    assert said.err.splitlines() == ["commcheck: warning: not notified: hook oncall: gone"] * 3
    assert "not notified" not in said.out
    page = (tmp_path / runs[0] / "report.html").read_text("utf-8")
    assert '<html lang="zh-Hans">' in page
    assert json.loads((tmp_path / runs[0] / "results.json").read_bytes())["run"]["exit_code"] == 1


def test_a_run_on_another_inventory_is_not_the_run_before(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Two fleets with reports in one folder: each change is one of the fleet's own."""
    told: list[str] = []

    def send(_hook: Hook, record: Record) -> str:
        told.append(record.info.run_id)
        return ""

    monkeypatch.setattr("commcheck.report.hooks.send", send)
    hook = Hook("oncall", "slack", "https://x.example")
    for number, (record, inventory) in enumerate(
        (
            (healthy(), "a.yaml"),
            (incident(), "b.yaml"),
            (healthy(), "a.yaml"),
            (incident(), "b.yaml"),
        )
    ):
        info = replace(record.info, playbook="p", limit="", inventory=(inventory,))
        delivered(tmp_path, replace(record, info=info), hook, f"2026112{number}T000000Z-0000")
    assert told == ["20261121T000000Z-0000"]


@click.command()
@LANG
@NOTIFY
def command(lang: str, notify: tuple[object, ...]) -> None:
    click.echo(f"{lang} {len(notify)}")


@pytest.mark.parametrize(
    ("locale", "words", "says"),
    [
        ({"LANG": "zh_CN.UTF-8"}, [], "zh 0"),
        ({"LANG": "zh_CN.UTF-8", "LC_ALL": "C"}, [], "en 0"),
        ({}, [], "en 0"),
        ({"LANG": "zh_TW"}, ["--lang", "en"], "en 0"),
        ({}, ["--notify", "x"], "no [hooks.x] (none)"),
    ],
)
def test_language_and_hooks_of_the_command_line(
    monkeypatch: pytest.MonkeyPatch, locale: dict[str, str], words: list[str], says: str
) -> None:
    from click.testing import CliRunner

    for name in ("LANG", "LC_ALL", "LC_MESSAGES", "COMMCHECK_LANG", "COMMCHECK_NOTIFY"):
        monkeypatch.delenv(name, raising=False)
    for name, value in locale.items():
        monkeypatch.setenv(name, value)
    done = CliRunner().invoke(command, words)
    assert says in (done.output or str(done.exception))


def test_what_is_no_terminal_has_no_edge(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("COLUMNS", raising=False)
    assert look_of("auto").width == NO_EDGE
    monkeypatch.setenv("COLUMNS", "72")
    assert look_of("auto").width == 72
