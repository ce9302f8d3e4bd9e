"""What the shell completes: check ids, causes, hosts, faults, playbooks, runs.

Looks at file names and texts only: nothing is imported that a check or a fault needs, no socket is
opened, and whatever goes wrong completes nothing.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator
from pathlib import Path
from typing import Any, Final

import click
from click.shell_completion import CompletionItem

from commcheck.lazy import regex

_LAYERS: Final = ("physical", "library", "runtime", "application")
_SLUG: Final = regex(r"""\bslug=\s*["']([a-z0-9-]+)["']""")
_SECTION: Final = regex(r"^#### .* \(`([a-z0-9-]+)`\)$", re.MULTILINE)
_ID: Final = regex(r"""\bid=\s*["']([a-z]+\.[a-z0-9-]+)["']""")
_WORD: Final = regex(r"^.*[,:&!]")

Words = Callable[[click.Context], Iterable[str]]
Complete = Callable[[click.Context, click.Parameter, str], list[CompletionItem]]


def completing(words: Words, *, files: bool = False) -> Complete:
    """A ``shell_complete`` callback. ``files``: whatever else begins so may be a file."""

    def complete(ctx: click.Context, _param: click.Parameter, begun: str) -> list[CompletionItem]:
        try:
            found = sorted({word for word in words(ctx) if word.startswith(begun)})
        except Exception:  # noqa: BLE001 - a shell that waits for words must not get a traceback
            found = []
        items = [CompletionItem(word) for word in found]
        return items if items or not files else [CompletionItem(begun, type="file")]

    return complete


def in_pattern(words: Words) -> Complete:
    """The same for the last word of a pattern such as ``gpu:!gpu-07``."""

    def complete(ctx: click.Context, param: click.Parameter, begun: str) -> list[CompletionItem]:
        before = match[0] if (match := _WORD.match(begun)) else ""
        found = completing(words)(ctx, param, begun[len(before) :])
        return [CompletionItem(f"{before}{item.value}") for item in found]

    return complete


# --- words --------------------------------------------------------------------------------------


def checks(ctx: click.Context) -> Iterator[str]:
    """Ids of checks."""
    for path in _check_files(ctx):
        found = _ID.search(path.read_text(encoding="utf-8", errors="replace"))
        yield found[1] if found else f"{path.parent.name}.{path.stem.replace('_', '-')}"


def checks_and_causes(ctx: click.Context) -> Iterator[str]:
    """Ids of checks, and slugs of their causes."""
    yield from checks(ctx)
    # The runbook has a section for each bundled cause, wherever the cause is declared.
    runbook = _bundled("runbook.md").read_text(encoding="utf-8")
    yield from _SECTION.findall(runbook)
    for path in _check_files(ctx):
        yield from _SLUG.findall(path.read_text(encoding="utf-8", errors="replace"))


def faults(ctx: click.Context) -> Iterator[str]:
    """Names of faults; after ``@`` the hosts of the demo."""
    hosts = int(ctx.params.get("hosts") or 8)
    for path in (Path(__file__).parent / "demo" / "faults").glob("[a-z]*.py"):
        name = path.stem.replace("_", "-")
        yield name
        yield from (f"{name}@gpu-{number:02d}" for number in range(1, hosts + 1))


def personas(_ctx: click.Context) -> Iterator[str]:
    """Names of what a simulated host may be."""
    for path in (Path(__file__).parent / "demo" / "personas").glob("[a-z]*.py"):
        yield path.stem.replace("_", "-")


def playbooks(_ctx: click.Context) -> Iterator[str]:
    """The playbooks of this folder, and the names of the bundled ones."""
    for path in (*Path("playbooks").glob("*.yaml"), *Path("playbooks").glob("*.yml")):
        yield str(path)
    for path in _bundled("playbooks").glob("*.yaml"):
        yield path.stem


def runs(ctx: click.Context) -> Iterator[str]:
    """Runs in the folder of reports, and the names that stand for some."""
    from commcheck.report.find import LAST, LAST_GREEN, run_ids

    yield from (LAST, LAST_GREEN)
    yield from run_ids(Path(ctx.params.get("out") or "reports"))


def hosts(ctx: click.Context) -> Iterator[str]:
    """Hosts and groups of the inventory that stands earlier on the line."""
    from commcheck.inventory.load import load, starts_program

    sources = ctx.params.get("inventory") or ()
    # A program that makes an inventory may take its time, and may do anything.
    if sources and not starts_program(sources, cwd=Path.cwd()):
        inventory = load(tuple(sources), cwd=Path.cwd())
        yield from inventory.groups
        yield from (host.name for host in inventory.hosts)


def _bundled(name: str) -> Path:
    """What the wheel carries, or what lies beside the sources of a checkout."""
    here = Path(__file__).resolve().parent
    wheel = here / "_bundled"
    return (wheel if wheel.is_dir() else here.parents[1]) / name


def _check_files(ctx: click.Context) -> Iterator[Path]:
    extra: Any = ctx.params.get("check_folders") or ()
    for folder in (*extra, Path("checks"), _bundled("checks")):
        for layer in _LAYERS:
            yield from (folder / layer).glob("[a-z]*.py")
