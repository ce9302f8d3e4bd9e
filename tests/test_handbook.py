"""The pages of ``docs/``: tables are today's, drills go as told, links lead somewhere."""

from __future__ import annotations

import re
import shlex
from datetime import date
from pathlib import Path

import pytest

from commcheck import waivers, when
from commcheck.check import Nothing, readings_of
from commcheck.cli import main
from commcheck.command import Output
from commcheck.demo.command import broken
from commcheck.demo.fault import place
from commcheck.demo.persona import cast
from commcheck.discover import bundled_folder, discover
from commcheck.errors import ParseError
from commcheck.handbook import PAGES
from commcheck.inventory.declared import Notes
from commcheck.lint import lint
from commcheck.model import Machine, Status
from commcheck.playbook import ENTRY_KEYS, PLAY_KEYS, PLAYBOOK_KEYS, parse
from commcheck.report import text
from commcheck.report.folder import RunFolder
from commcheck.runbook import bundled
from tests.demo.instant import climb

ROOT = Path(__file__).parents[1]
DOCS = ROOT / "docs"
DRILLS = re.findall(
    r"^```sh\ncommcheck (demo [^\n]*)\n```\n\n```text\n(.*?)\n```$",
    (DOCS / "drills.md").read_text(),
    re.MULTILINE | re.DOTALL,
)


@pytest.mark.parametrize("name", PAGES)
def test_the_tables_are_fresh(name: str) -> None:
    assert (DOCS / f"{name}.md").read_text() == PAGES[name](), "make handbook"


def test_every_variable_of_the_code_is_told() -> None:
    """Keys are declared by name; one that no check asks for would be told nowhere."""
    told = (DOCS / "variables.md").read_text()
    declared = {
        name
        for folder in ("src", "checks")
        for path in (ROOT / folder).rglob("*.py")
        for name in re.findall(r'\bname="(commcheck_\w+)"', path.read_text())
    }
    assert len(declared) > 40
    assert [name for name in sorted(declared) if f"`{name}`" not in told] == []


def blocks(page: str, language: str) -> list[str]:
    """The fenced blocks of a page that are in one language."""
    return re.findall(
        rf"^```{language}\n(.*?)^```$", (DOCS / page).read_text(), re.MULTILINE | re.DOTALL
    )


def test_the_example_of_a_check_is_one(tmp_path: Path) -> None:
    (example,) = blocks("writing-a-check.md", "python")
    path = tmp_path / "checks" / "physical" / "swap_off.py"
    path.parent.mkdir(parents=True)
    path.write_text(example)
    found = discover(cwd=tmp_path)
    assert lint([], found, cwd=tmp_path, today=date(2026, 1, 1)) == Notes()
    (check,) = (one.check for one in found if one.id == "physical.swap-off")
    (reading,) = readings_of(check.seen).values()
    (reader,) = reading.reader.readers
    head = "Filename Type Size Used Priority\n"
    for line, status in (("", Status.PASS), ("/dev/sda2 partition 9 5 -2\n", Status.FAIL)):
        seen = check.seen(reader.parse(Output(head + line)))
        (verdict,) = check.verdicts(seen, Machine("gpu-01"), Nothing(), check.limits())
        assert verdict.status is status
    with pytest.raises(ParseError):
        reader.parse(Output("cat: /proc/swaps: no such table\n"))


def test_the_page_on_playbooks_is_right_and_whole() -> None:
    found = discover(cwd=bundled_folder("checks"))
    playbook, of_waivers = blocks("playbooks.md", "yaml")
    assert parse(playbook, "playbooks.md", found).plays
    notes = Notes()
    waivers.read_file_of_waivers(of_waivers, "playbooks.md", found, notes)
    assert notes == Notes()
    keys = {*PLAYBOOK_KEYS, *PLAY_KEYS, *ENTRY_KEYS, *when.KEYS, *waivers.KEYS}
    assert [key for key in sorted(keys) if not re.search(rf"\b{key}:", playbook)] == []


def anchors(path: Path) -> set[str]:
    """What can be linked to: given anchors, and those that headings have."""
    written = bundled() if path.name == "runbook.md" else path.read_text()
    headings = re.findall(r"^#+ (.+)$", written, re.MULTILINE)
    slugs = {re.sub(r"[^\w -]", "", each.lower()).replace(" ", "-") for each in headings}
    return slugs | set(re.findall(r'<a id="([^"]+)">', written))


@pytest.mark.parametrize(
    "page", ["README.md", "README.zh.md", *sorted(f"docs/{p.name}" for p in DOCS.glob("*.md"))]
)
def test_links_lead_somewhere(page: str) -> None:
    path = ROOT / page
    known: dict[Path, set[str]] = {}
    for link in re.findall(r"\]\(([^)\s]+)\)", path.read_text()):
        if "://" in link:
            continue
        name, _, anchor = link.partition("#")
        target = (path.parent / name).resolve() if name else path
        assert target.exists(), link
        if anchor:
            if target not in known:
                known[target] = anchors(target)
            assert anchor in known[target], link


@pytest.mark.parametrize("name", ["README.md", "README.zh.md"])
def test_every_page_is_linked_from_the_readme(name: str) -> None:
    readme = (ROOT / name).read_text()
    assert [p.name for p in sorted(DOCS.glob("*.md")) if f"docs/{p.name}" not in readme] == []


def test_there_are_drills() -> None:
    assert len(DRILLS) == (DOCS / "drills.md").read_text().count("```sh") == 9


@pytest.mark.slow
@pytest.mark.parametrize(("command", "told"), DRILLS)
def test_a_drill_goes_as_the_page_says(command: str, told: str, tmp_path: Path) -> None:
    options = main.commands["demo"].make_context("demo", shlex.split(command)[1:]).params
    states = cast(options["hosts"], options["personas"])
    placed = place(options["faults"], [state.name for state in states])
    code = climb([broken(state, placed) for state in states], tmp_path)
    screen = text.render(
        RunFolder.open("last", tmp_path).record(), tmp_path, unicode=True, color=False, width=200
    )
    *lines, last = told.splitlines()
    assert last == f"exit {code}"
    assert [line for line in lines if line not in screen] == []
