"""What to do next, on the screen: the steps of the headline's cause, the first of each other."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, Final

from commcheck.model import Status, Words
from commcheck.report.cleaning import for_console
from commcheck.report.interface import counted, known, t
from commcheck.report.junit import anchor
from commcheck.report.lines import wrapped
from commcheck.report.record import JOB
from commcheck.report.words import columns_of

if TYPE_CHECKING:
    from commcheck.diagnose import Diagnosis, Fix
    from commcheck.report.text import Look
    from commcheck.report.unreached import Unreached

_MOST_PLACES: Final = 4
_MOST_NAMES: Final = 400
"""Characters of hosts behind a step; of more there is the first, and how many they are."""
_ALSO: Final = 3
"""Further causes of which the first step is shown below that of the headline's."""


def lines(diagnosis: Diagnosis, of_files: bool, runbook_url: str, look: Look) -> Iterator[str]:
    """What speaks for the headline's cause and against it, and what to do, step by step.

    ``of_files``: the reader judged files, and has no page at hand that says what a command does.
    """
    margin = " " * columns_of(look.label("then:"))
    if diagnosis.cause is not None:
        for label, told in (
            ("Shared by:", tuple(share.words for share in diagnosis.cause.shares)),
            ("For it:", diagnosis.cause.speaks_for),
            ("Against:", diagnosis.cause.speaks_against),
        ):
            for words in told[:2]:
                yield look.label(label) + for_console(look.say(words), 2000)
    if diagnosis.fix is not None and diagnosis.cause is not None:
        steps: dict[int, list[Fix]] = {}
        for fix in diagnosis.cause.fixes:
            steps.setdefault(fix.step, []).append(fix)
        for number, same in enumerate(steps.values()):
            hosts = for_console(_places(same[0], look))
            # Never cut: a remedy is there to be copied whole.
            told_to = for_console(look.say(same[0].says), 2000)
            where = "" if hosts == JOB else f"   {look.say(t('on'))} {hosts}"
            label = look.label("then:" if number else "Fix first:")
            yield f"{label}{told_to}{where}{_like_it(len(same) - 1, look)}"
            if of_files and same[0].remedy.command:
                yield from wrapped(margin + look.say(same[0].remedy.effect), look.width, margin)
        who = diagnosis.fix.remedy.who
        needs = Words(f"   (needs the {who})", f"   （执行者：{known(f'the {who}').zh}）")
        page = f"{runbook_url}#{anchor(diagnosis.cause.check)}"
        yield look.label("Read:") + page + ("" if who == "operator" else look.say(needs))
    yield from _also(diagnosis, margin, look)


def _also(diagnosis: Diagnosis, margin: str, look: Look) -> Iterator[str]:
    """The first step of each further cause: of two faults neither waits for the other."""
    others = [
        group
        for group in diagnosis.groups
        if group is not diagnosis.cause and group.status is Status.FAIL and group.fixes
    ]
    for group in others[:_ALSO]:
        fix = group.fixes[0]
        hosts = for_console(_places(fix, look))
        where = "" if hosts == JOB else f"   {look.say(t('on'))} {hosts}"
        title = for_console(look.say(group.title))
        named = look.say(Words(f"   ({title})", f"   （{title}）"))
        yield look.label("Also:") + for_console(look.say(fix.says), 2000) + where + named
    if len(others) > _ALSO:
        left = look.say(counted(len(others) - _ALSO, "more cause"))
        words = Words(f"... and {left}, in the report", f"……另有 {left}，见报告")
        yield margin + look.say(words)


def _places(fix: Fix, look: Look) -> str:
    """The hosts; their ports, too, where no command names them: somebody goes there by foot."""
    if not fix.remedy.command and 0 < len(fix.subjects) <= _MOST_PLACES:
        return ",".join(fix.subjects)
    return look.hosts(fix.hosts, _MOST_NAMES)


def _like_it(others: int, look: Look) -> str:
    words = Words(f"   (and {others:,} like it)", f"   （另有 {others:,} 条类似）")
    return look.say(words) if others else ""


def of_unreached(
    diagnosis: Diagnosis, sorts: Sequence[Unreached], runbook_url: str, look: Look
) -> Iterator[str]:
    """Where nothing fails: what to do about the largest part of those that were not reached."""
    if diagnosis.cause is not None or not sorts:
        return
    first = sorts[0]
    if first.remedy:
        where = f"   {look.say(t('on'))} {for_console(look.hosts(first.same, _MOST_NAMES))}"
        more = _like_it(len(first.hosts) - len(first.same), look)
        yield f"{look.label('Fix first:')}{for_console(first.remedy, 2000)}{where}{more}"
    check = next((each.check for each in diagnosis.groups if each.slug == first.error), "")
    if check:
        yield f"{look.label('Read:')}{runbook_url}#{anchor(check)}"
