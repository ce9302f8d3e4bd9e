"""All rules on a job's environments: the verdicts, and the list of what was judged."""

from __future__ import annotations

from dataclasses import replace
from typing import Final

from commcheck.check import failed, passed, undecidable, warned
from commcheck.model import Status, Verdict, Words
from commcheck.nccl.environment import (
    rules_hccl,
    rules_host,
    rules_interfaces,
    rules_job,
    rules_mark,
    rules_network,
    rules_paths,
    rules_values,
)
from commcheck.nccl.environment.model import CONF, Case
from commcheck.nccl.environment.rule import EnvRule
from commcheck.nccl.ruling import Found, Judgement, unknown
from commcheck.report.counts import many
from commcheck.report.ranges import natural

ID: Final = "library.env"
TITLE: Final = Words("The job's environment variables", "作业环境变量审计")

RULES: Final[tuple[EnvRule, ...]] = tuple(
    sorted(
        (
            *rules_values.RULES,
            *rules_network.RULES,
            *rules_interfaces.RULES,
            *rules_mark.RULES,
            *rules_paths.RULES,
            *rules_host.RULES,
            *rules_job.RULES,
            *rules_hccl.RULES,
        ),
        key=lambda rule: rule.id,
    )
)


GIVE: Final = "give /proc/PID/environ of a rank, a pod's YAML, a job script or a log"


def judge(case: Case) -> Judgement:
    """Every rule. Where nothing is wrong: pass, beside what a set variable leaves undecided."""
    nothing = unknown("there is no environment in the input", GIVE)
    is_told = bool(case.environments or case.tables)
    rulings = {rule.id: rule.judge(case) if is_told else nothing for rule in RULES}
    found = [each for ruling in rulings.values() for each in ruling.found]
    found.sort(key=lambda each: each.status is not Status.FAIL)
    open_ones = [
        replace(undecidable(rulings[rule.id].why, turn_on=rulings[rule.id].turn_on), rule=rule.id)
        for rule in RULES
        if rule.weighty and rulings[rule.id].state == "unknown"
    ]
    for one in case.environments:
        if one.strange:
            reason = f"{one.who[0]} names {', '.join(one.strange[:3])} in a form that is not read"
            open_ones.append(undecidable(reason, turn_on=GIVE))
    judgement = Judgement((), rulings)
    verdicts = [*(verdict_of(each) for each in found), *open_ones]
    if not found:
        verdicts.append(_nothing_wrong(case, judgement))
    return replace(judgement, verdicts=tuple(verdicts))


def verdict_of(found: Found) -> Verdict:
    """What a rule found, as a verdict."""
    say = failed if found.status is Status.FAIL else warned
    measured = {**found.measured, "evidence": list(found.evidence)}
    reason = " ".join(found.reason.split())
    verdict = say(found.cause, reason, measured=measured, rule=found.rule)
    return replace(verdict, hosts=tuple(sorted(found.hosts, key=natural)))


def _nothing_wrong(case: Case, judgement: Judgement) -> Verdict:
    measured: dict[str, object] = {
        "rules_judged": list(judgement.judged),
        "rules_not_judged": dict(judgement.not_judged),
        "remarks": list(judgement.remarks),
    }
    count = len({name for one in case.environments for name in one.settings})
    whose = sum(len(one.who) for one in case.ranks)
    files = sorted({who for one in case.environments if one.kind == CONF for who in one.who})
    if case.tables and not case.environments:
        npus = sum(len(table.npus) for table in case.tables)
        table = judgement.rulings["HENV-014"]
        if table.state == "unknown":
            return replace(undecidable(table.why, turn_on=table.turn_on), measured=measured)
        return passed(f"the rank table names {npus} NPUs, each once", measured=measured)
    if not case.environments:
        why = "there is no environment in the input"
        return replace(undecidable(why, turn_on=GIVE), measured=measured)
    of = f"{whose} processes" if whose > 1 else "one process" if whose else ", ".join(files)
    unread = sorted(
        {each for one in case.environments for each in (*one.unread, *one.shown_untold)}
    )
    but = f"; not read: {', '.join(unread[:4])}" if unread else ""
    return passed(f"nothing is wrong in {many(count, 'variable')} of {of}{but}", measured=measured)
