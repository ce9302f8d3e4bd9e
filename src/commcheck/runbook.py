"""``runbook.md``: the procedure for a person, assembled from the checks themselves.

Written by ``python -m commcheck.runbook > runbook.md``; a test holds the file to it. Reports link
to the section of a check, whose anchor is the check's id with ``-`` for the dot. ``runbook_zh`` has
the Chinese one. The copy in a run's folder has the sections of a site's checks as well.
"""

from __future__ import annotations

import re
import sys
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Final

from commcheck.check import AnyCheck
from commcheck.discover import FoundCheck, bundled_folder, load
from commcheck.model import Cause, Layer, Remedy, Words
from commcheck.plan import REACHABLE
from commcheck.report.words import Lang

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
        here = {check.id: (check, doc) for check, doc in checks if check.layer is layer}
        if not here:
            continue
        parts.append(f"## Layer {layer.height}: {layer.value}\n\n{what[0].upper()}{what[1:]}\n")
        in_order = by_needs(check for check, _ in here.values())
        parts.extend(_section(*here[check.id], told) for check in in_order)
    return "\n".join(parts)


def by_needs(checks: Iterable[AnyCheck]) -> list[AnyCheck]:
    """Reachable first, a check after those it needs, else by id: as a person would look."""
    left = sorted(checks, key=lambda check: (check.id != REACHABLE, check.id))
    ids = {check.id for check in left}
    placed: list[AnyCheck] = []
    done: set[str] = set()
    while left:
        # Needs outside the list, or in a circle, must not keep a section out of the book.
        ready = next((check for check in left if set(check.needs) & ids <= done), left[0])
        left.remove(ready)
        placed.append(ready)
        done.add(ready.id)
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
    command = f"`{shown(remedy.command)}`: " if remedy.command else ""
    who = "" if remedy.who == "operator" else f" Who: {remedy.who}."
    return f"{command}{shown(remedy.effect.en)} Before: {shown(remedy.precondition.en)}{who}"


def shown(text: str) -> str:
    """A command or text with its places as words in capitals: ``{netdev}`` -> ``NETDEV``."""
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


def bundled(lang: Lang = "en") -> str:
    """The runbook of the checks that come with commcheck."""
    from commcheck import runbook_zh

    found = [
        load(path, layer, bundled=True)
        for layer in Layer
        for path in sorted(Path(bundled_folder("checks") / layer.value).glob("[!_]*.py"))
    ]
    if lang == "zh":
        return runbook_zh.assemble([each.check for each in found])
    return assemble([(each.check, each.doc) for each in found])


def of_site(found: Sequence[FoundCheck]) -> Mapping[str, Words]:
    """The sections, by anchor, that the bundled book has not, or has otherwise; most runs: none.

    A bundled section is among them where a cause that it links to is now told in it.
    """
    if all(one.bundled for one in found):
        return {}
    from commcheck import runbook_zh
    from commcheck.report.runbook_pages import as_bundled, by_anchor

    english = by_anchor(assemble([(one.check, one.doc) for one in found]))
    chinese = by_anchor(runbook_zh.assemble([one.check for one in found]))
    known = by_anchor(as_bundled("en"))
    return {
        place: Words(text, chinese[place])
        for place, text in english.items()
        if known.get(place) != text
    }


if __name__ == "__main__":
    # Bytes: the file is UTF-8 whatever the terminal is.
    sys.stdout.buffer.write(bundled("zh" if sys.argv[1:] == ["zh"] else "en").encode())
