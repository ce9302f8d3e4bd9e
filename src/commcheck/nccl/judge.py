"""All rules on one job: the verdicts, and the list of what was judged and what was not."""

from __future__ import annotations

from dataclasses import replace
from typing import Final

from commcheck.check import failed, passed, undecidable, warned
from commcheck.model import Status, Verdict, Words
from commcheck.nccl import (
    rules_diag,
    rules_errors,
    rules_gdr,
    rules_gpu,
    rules_hccl,
    rules_hccl_links,
    rules_ib,
    rules_init,
    rules_network,
    rules_nics,
    rules_program,
    rules_remarks,
    rules_topology,
    rules_unnamed,
    rules_versions,
)
from commcheck.nccl.case import Case
from commcheck.nccl.rules_errors import first_cause
from commcheck.nccl.ruling import INFO_EVERYWHERE, Found, Judgement, Rule, Ruling, other, unknown
from commcheck.nccl.topology import figure, rings
from commcheck.report.counts import many
from commcheck.report.ranges import natural

NCCL_RULES: Final[tuple[Rule, ...]] = tuple(
    sorted(
        (
            *rules_network.RULES,
            *rules_nics.RULES,
            *rules_init.RULES,
            *rules_gdr.RULES,
            *rules_gpu.RULES,
            *rules_ib.RULES,
            *rules_topology.RULES,
            *rules_errors.RULES,
            *rules_versions.RULES,
            *rules_unnamed.RULES,
            *rules_program.RULES,
            *rules_remarks.RULES,
            *rules_diag.RULES,
        ),
        key=lambda rule: (not rule.id.startswith("LOG"), rule.id),
    )
)
HCCL_RULES: Final = rules_hccl.RULES

ID: Final = "library.log"
TITLE: Final = Words("What NCCL and HCCL say they do", "NCCL/HCCL 日志审计")

NEEDED: Final = ("LOG-001", "LOG-006", "LOG-013", "LOG-014", "LOG-034", "LOG-054")
"""What must be judged before a job may be called healthy."""

NEEDED_ON_NETWORK: Final = ("LOG-023", "LOG-024")

CUDA_ONLY: Final = frozenset({"LOG-017", "LOG-043", "LOG-045"})


WATCHDOGS: Final = frozenset(rule.id for rule in rules_program.RULES)

_OF_THE_INPUT: Final = WATCHDOGS | {"LOG-051", "LOG-053"}
"""Rules on what names no process: asked once, of the first job."""

_WORST_FIRST: Final = ("wrong", "unknown", "right", "other")


def judge(case: Case) -> Judgement:
    """Every rule on every job; the verdict that names the first cause stands first.

    Where nothing is wrong there is one verdict: pass, or undecidable with what to turn on.
    """
    judgement = _judged(case)
    if any(verdict.status is Status.FAIL for verdict in judgement.verdicts):
        return judgement
    last = summary(case, judgement)
    if judgement.verdicts and last.status is Status.PASS:
        return judgement  # what is only warned of is not healthy either
    return replace(judgement, verdicts=(*judgement.verdicts, last))


def _judged(case: Case) -> Judgement:
    """What the rules find, without a summary."""
    if len(case.jobs) < 2:
        return _of_one(case, _rulings(case))
    first, *others = case.jobs
    rulings = [_rulings(first)]
    for each in others:
        rulings.append({rule.id: _ask(rule, each) for rule in NCCL_RULES if _is_of_job(rule)})
    watched = _watched(case)
    for rule in rules_program.RULES:
        if watched is None:  # in a stream of several jobs
            root = next(filter(None, map(first_cause, case.jobs)), None)
            nobody = Case(case.job, case.site, frozenset())
            rulings[0][rule.id] = other("an error comes first") if root else _ask(rule, nobody)
        elif watched is not first:
            del rulings[0][rule.id]
            rulings[case.jobs.index(watched)][rule.id] = _ask(rule, watched)
    jobs = [_of_one(one, asked) for one, asked in zip(case.jobs, rulings, strict=True)]
    verdicts = [
        replace(verdict, reason=f"{one.name}: {verdict.reason}")
        if watched is not None or verdict.rule not in WATCHDOGS
        else verdict
        for one, told in zip(case.jobs, jobs, strict=True)
        for verdict in told.verdicts
    ]
    verdicts.sort(key=lambda verdict: verdict.status is not Status.FAIL)
    asked = dict.fromkeys(rule for told in jobs for rule in told.rulings)
    worst = {
        rule: _worst([told.rulings[rule] for told in jobs if rule in told.rulings])
        for rule in asked
    }
    return Judgement(tuple(verdicts), worst, tuple(jobs))


def _watched(case: Case) -> Case | None:
    """Whose watchdogs PyTorch tells of: the job with whose lines they stand; None: nobody knows."""
    files = {each.at[0] for each in case.timeouts} | {each.at[0] for each in case.progress}
    files |= {each.at[0] for each in case.torch_ended}
    if not files:
        return case.jobs[0]
    there = [
        one for one in case.jobs if files & {file for proc in one.procs for file in proc.files}
    ]
    return there[0] if len(there) == 1 else None


def _is_of_job(rule: Rule) -> bool:
    return rule.id not in _OF_THE_INPUT and rule.id.startswith("LOG")


def _worst(rulings: list[Ruling]) -> Ruling:
    """A rule's answer for several jobs."""
    worst = min(rulings, key=lambda ruling: _WORST_FIRST.index(ruling.state))
    return replace(worst, found=tuple(found for ruling in rulings for found in ruling.found))


def _rulings(case: Case) -> dict[str, Ruling]:
    rulings: dict[str, Ruling] = {}
    hccl = case.job.hccl.any
    nccl = _says_something(case)
    if nccl:
        rulings |= {rule.id: _ask(rule, case) for rule in NCCL_RULES}
    elif not hccl:
        nothing = unknown(*_nothing(case))
        rulings |= {rule.id: nothing for rule in (*NCCL_RULES, *HCCL_RULES)}
    if hccl:
        rulings |= {rule.id: rule.judge(case) for rule in HCCL_RULES}
    return rulings


def _of_one(case: Case, rulings: dict[str, Ruling]) -> Judgement:
    found = [each for ruling in rulings.values() for each in ruling.found]
    return Judgement(tuple(_verdict(each) for each in _in_order(case, found)), rulings)


def _says_something(case: Case) -> bool:
    job = case.job
    torch = job.timeouts or job.progress or job.ended
    return bool(job.stats.nccl_lines or job.procs or job.banners or torch)


def _nothing(case: Case) -> tuple[str, str]:
    """What the input lacks, and what to turn on."""
    if case.job.hccl.ascend is not None:
        return "a job on NPUs, but no line of HCCL", rules_hccl_links.PLOGS
    if lost := case.job.stats.fragments:
        return (
            f"{many(lost, 'line')} of NCCL without their head, host:pid:tid [device]: who says "
            "what is not told",
            "give the lines as NCCL wrote them",
        )
    return "there is no NCCL or HCCL line in the input", INFO_EVERYWHERE


def _ask(rule: Rule, case: Case) -> Ruling:
    if case.job.rccl and rule.id in CUDA_ONLY:
        return other("this is RCCL: no CUDA, no NVLS")
    return rule.judge(case)


def _in_order(case: Case, found: list[Found]) -> list[Found]:
    root = first_cause(case)
    place = case.job.where(root.at) if root else ""

    def rank(each: Found) -> tuple[bool, bool]:
        return each.status is not Status.FAIL, not (place and place in each.evidence)

    ordered = sorted(found, key=rank)
    if root and ordered and place in ordered[0].evidence and len(ordered) > 1:
        ordered[0] = replace(ordered[0], measured={**ordered[0].measured, "first_cause": True})
    return ordered


def _verdict(found: Found) -> Verdict:
    say = failed if found.status is Status.FAIL else warned
    measured = {**found.measured, "evidence": list(found.evidence)}
    verdict = say(
        found.cause,
        " ".join(found.reason.split()),
        measured=measured,
        rule=found.rule,
        **found.places,
    )
    hosts = tuple(sorted(found.hosts, key=natural))
    return replace(verdict, hosts=hosts, figures=found.figures)


def summary(case: Case, judgement: Judgement) -> Verdict:
    """Where nothing fails: healthy (LOG-055), or what keeps it from being called so."""
    if not judgement.jobs:
        return _summary(case, judgement, judgement)
    told = [
        (one, _summary(one, of_one, judgement))
        for one, of_one in zip(case.jobs, judgement.jobs, strict=True)
    ]
    doubts = [(one, each) for one, each in told if each.status is not Status.PASS]
    (one, shown), *others = doubts or told
    more = many(len(others), "more job")
    are = "is" if len(others) == 1 else "are"
    also = f"; {more} {are} {'not told either' if doubts else 'right, too'}" if others else ""
    return replace(shown, reason=f"{one.name}: {shown.reason}{also}")


def _summary(case: Case, judgement: Judgement, whole: Judgement) -> Verdict:
    """Of one job. ``whole``: the rules' answers for all jobs."""
    if case.job.hccl.any and "LOG-001" not in judgement.rulings:
        return _hccl_summary(judgement)
    rule, why, turn_on = _doubt(case, judgement)
    measured: dict[str, object] = {
        "rules_judged": list(whole.judged),
        "rules_not_judged": dict(whole.not_judged),
    }
    if rule:
        return replace(undecidable(why, turn_on=turn_on), rule=rule, measured=measured)
    comm = case.world
    known = rings(case, comm) if comm else ()
    text = _healthy_text(case)
    figures = (figure(case, comm, known[0]),) if comm and known and len(case.hosts) > 1 else ()
    told = "LOG-055" if comm and comm.via else "DIAG-002" if case.job.diag else "LOG-055"
    return replace(passed(text, measured=measured), rule=told, figures=figures)


def own_part(case: Case) -> str:
    """What a host that has only a part of each job may say where all of that is right.

    Empty where its own ranks are not all there, did not complete, or used no path yet.
    """
    parts = [_own_part(each) for each in case.jobs]
    return "; ".join(parts) if all(parts) else ""


def _own_part(case: Case) -> str:
    comm = case.world
    if comm is None or case.damaged or len(case.hosts) != 1 or not comm.via:
        return ""
    members = comm.members.values()
    if not all(member.complete and member.local_ranks == len(members) for member in members):
        return ""
    if case.network_in_use and not comm.nets and not comm.collnet:
        return ""
    came = f"all {len(members)} ranks" if len(members) > 1 else "the rank"
    return (
        f"{came} of this host came up{_of_network(case)}; "
        f"{comm.nranks - len(members)} more of the job elsewhere"
    )


def _healthy_text(case: Case) -> str:
    comm = case.world
    diag = case.job.diag
    if comm is None or not comm.members:
        return f"NCCL's diagnostics report nothing wrong ({many(len(diag), 'line')})"
    if case.in_mesh:
        across = many(comm.nranks, "rank")
        ranks = f"{many(len(case.world_procs), 'process', 'processes')}, in groups of {across}"
        return f"{ranks} across {many(len(case.hosts), 'host')}, came up{_of_network(case)}"
    ranks = f"all {comm.nranks} ranks" if comm.nranks > 1 else "the rank"
    return f"{ranks} on {many(len(case.hosts), 'host')} came up{_of_network(case)}"


def _of_network(case: Case) -> str:
    comm = case.world
    parts = [""]
    if comm is not None and case.network_in_use:
        parts.append(f"network {case.network}")
        if comm.nets and case.network != "Socket" and any("GDRDMA" in via for via in comm.via):
            parts.append("GPU Direct on every rank")
        known = rings(case, comm)
        if known:
            each = many(known[0].crossings, "host crossing")
            parts.append(f"{many(len(known), 'ring')} with {each} each")
    else:
        parts.append("no network in use")
    return ", ".join(parts)


def _doubt(case: Case, judgement: Judgement) -> tuple[str, str, str]:
    """Why the job cannot be called healthy: rule, reason, what to turn on. Empty: it can."""
    job = case.job
    if not _says_something(case):
        return "LOG-052", *_nothing(case)
    if case.damaged:
        return "LOG-051", f"nothing can be counted: {case.damaged}", case.turn_on_whole
    comm = case.world
    if job.diag and (comm is None or not comm.via):
        return _diag_doubt(judgement)
    if comm is None:
        return _silence(case, judgement)
    done = sum(member.complete for member in comm.members.values())
    if case.narrow:
        came = done == len(comm.members)
        shown = "what is shown is right, but" if came else "init did not end where it is shown, and"
        return "LOG-055", f"{shown} {case.narrow}", case.turn_on_whole
    for rule in ("LOG-034", "LOG-054"):  # more than that init did not end
        ruling = judgement.rulings[rule]
        if done < comm.nranks and ruling.state == "unknown":
            return rule, ruling.why, ruling.turn_on
    if done < comm.nranks:
        return (
            "LOG-055",
            f"{done} of {comm.nranks} ranks are known to have completed init",
            case.turn_on_whole,
        )
    if case.network_in_use and not comm.nets and not comm.collnet:
        return (
            "LOG-055",
            "initialised, but no path over the network was used yet (paths connect at the first "
            "collective from 2.22)",
            "look again after the first step",
        )
    needed = NEEDED + (NEEDED_ON_NETWORK if case.network_in_use and comm.nets else ())
    for rule in needed:
        ruling = judgement.rulings[rule]
        if ruling.state == "unknown" and not _not_seen(case, rule):
            return rule, ruling.why, ruling.turn_on
    for rule, ruling in judgement.rulings.items():
        if ruling.doubt:
            return rule, ruling.why, ruling.turn_on
    return "", "", ""


def _silence(case: Case, judgement: Judgement) -> tuple[str, str, str]:
    """Why a log without any communicator tells nothing."""
    asked = ("LOG-054", *(("LOG-034",) if case.of_kind("completion") else ()))
    for rule in asked:
        ruling = judgement.rulings[rule]
        if ruling.state == "unknown":
            return rule, ruling.why, ruling.turn_on
    if case.errors:
        why = "no communicator is told of beside the warnings: at level WARN NCCL says nothing else"
    elif case.job.stats.nccl_lines or case.job.banners:
        why = "no error is told, and no communicator either: at level WARN NCCL says nothing else"
    else:
        why = "no NCCL line that tells of a communicator"
    return "LOG-055", why, INFO_EVERYWHERE


def _not_seen(case: Case, rule: str) -> bool:
    """True for parts that a job need not have: rings of one that only uses trees or NVLS."""
    comm = case.world
    if rule != "LOG-023" or comm is None:
        return False
    return not comm.ring_next and not comm.graph_next and comm.channels is None


def _diag_doubt(judgement: Judgement) -> tuple[str, str, str]:
    verified = judgement.rulings["DIAG-002"]
    for rule in ("DIAG-001", "DIAG-014", "DIAG-003", "DIAG-006"):
        ruling = judgement.rulings[rule]
        if ruling.state == "unknown":
            return rule, ruling.why, ruling.turn_on
    if verified.state == "right" or judgement.rulings["DIAG-009"].state == "right":
        return "", "", ""
    return "DIAG-002", "the report verified nothing", "keep the stdout of all ranks"


def _hccl_summary(judgement: Judgement) -> Verdict:
    measured: dict[str, object] = {
        "rules_judged": list(judgement.judged),
        "rules_not_judged": dict(judgement.not_judged),
    }
    for rule in ("HLOG-001", "HLOG-002", "HLOG-003"):
        ruling = judgement.rulings[rule]
        if ruling.state == "unknown":
            return replace(
                undecidable(ruling.why, turn_on=ruling.turn_on), rule=rule, measured=measured
            )
    return passed("no error in the HCCL logs of the input", measured=measured)
