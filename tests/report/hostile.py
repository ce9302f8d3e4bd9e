"""A record in which every text that a host or a user can choose is an attack."""

from __future__ import annotations

from datetime import timedelta

from commcheck.model import (
    Bound,
    Cause,
    Evidence,
    Finding,
    Kind,
    Remedy,
    Result,
    Status,
    Verdict,
    Words,
)
from commcheck.report.record import Plan, PlannedCheck, Record, RunInfo
from tests.report.runs import START

ATTACKS = (
    "\"><img src=x onerror=alert(1)>'",
    "</script><script>alert(2)</script>",
    "</style><style>*{display:none}</style></title><title>stolen",
    "{{7*7}}{% include 'report.css' %}${7*7}",
    "javascript:alert(3)",
    "</pre></details></main><iframe srcdoc='<script>alert(4)</script>'>",
    "x\u202egnp.exe\u2066 \x00 \x1b[31mred\x1b[0m \ud800 \ufffe",
    "<svg/onload=alert(5)> <!-- ]]> <a href=javascript:alert(6)>click</a>",
    "' onmouseover='alert(7)' style='position:fixed",
    "API_TOKEN=hunter2 password: hunter2 https://user:hunter2@example.com/",
)

HOSTILE = " ".join(ATTACKS)


def words(text: str) -> Words:
    return Words(text, text)


def record(text: str = HOSTILE) -> Record:
    """``text`` in every field, and a fail, a warning, an error and each kind of skip."""
    remedy = Remedy(command=text, effect=words(text), precondition=words(text), who=text)
    cause = Cause(slug=text, title=words(text), meaning=words(text), remedies=(remedy, remedy))
    evidence = (
        Evidence(f"once: {text}", 0, 0.1, text),
        Evidence(text, None, 0.1, text + "\n" * 9, truncated=True, used=False),
    )
    verdicts = [
        Verdict(
            status=status,
            reason=text,
            cause=cause,
            remedies=cause.remedies,
            measured={text: text, "list_": [text, {text: text}]},
            rule=text,
        )
        for status in (Status.FAIL, Status.WARN)
    ]
    verdicts += [
        Verdict(status=Status.ERROR, kind=kind, reason=text, error=text)
        for kind in (Kind.HOST, Kind.CHECK)
    ]
    verdicts += [
        Verdict(status=Status.SKIP, kind=kind, reason=text)
        for kind in Kind
        if kind not in (Kind.NONE, Kind.HOST, Kind.CHECK)
    ]
    verdicts.append(Verdict(status=Status.PASS, reason=text))
    checks = tuple(f"physical.{number}{text}" for number in range(len(verdicts)))
    hosts = (f"a{text}", f"b{text}")

    def result(host: str, check: str, verdict: Verdict) -> Result:
        finding = Finding(
            check=check,
            host=host,
            subject=text,
            verdict=verdict,
            bounds=(Bound(text, text, text, text),),
            evidence=evidence,
            unproven_below=(text,),
        )
        return Result(check=check, host=host, findings=(finding,))

    return Record(
        info=RunInfo(
            run_id=text,
            started=START,
            version=text,
            playbook=text,
            inventory=(text, text),
            inventory_digest=text,
            limit=text,
            settings={text: text},
        ),
        plan=Plan(
            hosts=hosts,
            checks=tuple(PlannedCheck(check, words(text), text, text) for check in checks),
            cases=dict.fromkeys(hosts, checks),
        ),
        results=tuple(
            result(host, check, verdict)
            for host in (*hosts, f"@{text}")
            for check, verdict in zip(checks, verdicts, strict=True)
        ),
        notes=(text,),
        ended=START + timedelta(seconds=1),
        state="interrupted",
        reached=dict.fromkeys(hosts, text),
    )
