"""``runbook.md``: the procedure for a person, assembled from the checks themselves.

Written by ``python -m commcheck.runbook > runbook.md``; a test holds the file to it. Reports link
to the section of a check, whose anchor is the check's id with ``-`` for the dot.
"""

from __future__ import annotations

import re
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Final

from commcheck.check import AnyCheck
from commcheck.discover import bundled_folder, load
from commcheck.model import Cause, Layer, Remedy
from commcheck.plan import REACHABLE

_LABELS: Final = ("Why", "Reads", "By hand", "Mend", "On the switch", "Healthy though odd")

_INTRODUCTION: Final = """\
# Runbook: where does the communication break?

A training job is slow or hangs. Climb from the wire upwards, one layer at a time, and stop at the
first layer that fails: what is wrong above it is most likely only its consequence.

{layers}

How to climb:

1. Run `commcheck run -i INVENTORY`. It only reads, and says where it breaks, on which hosts, why.
2. Go to the section that the report names. It says what the check means, how to see the same by
   hand, how to mend it and what that costs.
3. Mend the root cause, the least drastic remedy first. commcheck executes nothing of it. Words in
   capitals are yours to fill in; the report shows them filled.
4. Run again. Only what was read and is right counts as healthy: "could not be judged" is no pass.

Before anything is written to a host: is it drained, does the scheduler know, is it the NIC that
carries your SSH session, and is the far end agreed?
"""

_LAYERS: Final = {
    Layer.PHYSICAL: "hosts, accelerators, NICs, links, and what makes the fabric lossless",
    Layer.LIBRARY: "NCCL and HCCL: do they take the path that the hardware offers?",
    Layer.RUNTIME: "the running job: what it waits for, and what fails meanwhile",
    Layer.APPLICATION: "the training program: buckets, overlap, sharding",
}


def anchor(check_id: str) -> str:
    """The anchor of a check's section: ``physical.nic-mtu`` -> ``physical-nic-mtu``."""
    return check_id.replace(".", "-")


def assemble(checks: Sequence[tuple[AnyCheck, str]]) -> str:
    """The runbook from checks with their docstrings: layer by layer, in the order of the climb."""
    layers = "\n".join(
        f"{layer.height}. **{layer.value}**: {what}" for layer, what in _LAYERS.items()
    )
    parts = [_INTRODUCTION.format(layers=layers)]
    told: dict[str, None] = {}
    for layer, what in _LAYERS.items():
        here = [each for each in checks if each[0].layer is layer]
        if not here:
            continue
        parts.append(f"## Layer {layer.height}: {layer.value}\n\n{what[0].upper()}{what[1:]}\n")
        parts.extend(_section(check, doc, told) for check, doc in _by_needs(here))
    return "\n".join(parts)


def _by_needs(checks: Sequence[tuple[AnyCheck, str]]) -> list[tuple[AnyCheck, str]]:
    """Reachable first, a check after those it needs, else by id: as a person would look."""
    left = sorted(checks, key=lambda each: (each[0].id != REACHABLE, each[0].id))
    ids = {check.id for check, _ in left}
    placed: list[tuple[AnyCheck, str]] = []
    done: set[str] = set()
    while left:
        # Needs outside the list, or in a circle, must not keep a section out of the book.
        ready = next((each for each in left if set(each[0].needs) & ids <= done), left[0])
        left.remove(ready)
        placed.append(ready)
        done.add(ready[0].id)
    return placed


def _section(check: AnyCheck, doc: str, told: dict[str, None]) -> str:
    """One check's section. ``told``: slugs of causes that stand further up, and are linked."""
    lines = [f'<a id="{anchor(check.id)}"></a>', "", f"### {check.title.en} (`{check.id}`)", ""]
    lines += [check.title.zh, "", _markdown(doc)]
    if check.needs:
        needs = ", ".join(f"[`{need}`](#{anchor(need)})" for need in check.needs)
        lines += ["", f"**Judged after** {needs}."]
    new = [cause for cause in check.causes if cause.slug not in told]
    again = [cause for cause in check.causes if cause.slug in told]
    told.update((cause.slug, None) for cause in new)
    if new:
        lines += ["", "What it can find:"]
    for cause in new:
        lines += ["", *_cause(cause)]
    if again:
        links = ", ".join(f"[`{cause.slug}`](#{cause.slug})" for cause in again)
        lines += ["", f"What it can find{' as well' if new else ''}, told above: {links}."]
    return "\n".join(lines) + "\n"


def _cause(cause: Cause) -> list[str]:
    lines = [f'<a id="{cause.slug}"></a>', "", f"#### {cause.title.en} (`{cause.slug}`)", ""]
    lines += [f"{cause.title.zh}. {cause.meaning.en}", ""]
    for number, remedy in enumerate(cause.remedies, 1):
        lines.append(f"{number}. {_remedy(remedy)}")
    return lines


def _remedy(remedy: Remedy) -> str:
    """One list item: command, effect, what must be true before, and whose job it is."""
    command = f"`{_shown(remedy.command)}`: " if remedy.command else ""
    who = "" if remedy.who == "operator" else f" Who: {remedy.who}."
    return f"{command}{_shown(remedy.effect.en)} Before: {_shown(remedy.precondition.en)}{who}"


def _shown(text: str) -> str:
    return re.sub(r"\{(\w+)\}", lambda match: match[1].upper(), text)


def _markdown(doc: str) -> str:
    """A docstring as Markdown: single backticks, and each labelled paragraph on its own."""
    text = doc.strip().replace("``", "`")
    labels = "|".join(map(re.escape, _LABELS))
    return re.sub(
        rf"\n+^({labels}): (.)",
        lambda match: f"\n\n**{match[1]}.** {match[2].upper()}",
        text,
        flags=re.MULTILINE,
    )


def bundled() -> str:
    """The runbook of the checks that come with commcheck."""
    found = [
        load(path, layer, bundled=True)
        for layer in Layer
        for path in sorted(Path(bundled_folder("checks") / layer.value).glob("[!_]*.py"))
    ]
    return assemble([(each.check, each.doc) for each in found])


if __name__ == "__main__":
    # Bytes: the file is UTF-8 whatever the terminal is.
    sys.stdout.buffer.write(bundled().encode())
