"""An audit of environments in files: what ``commcheck analyze env`` does.

Process environments, dumps, ``nccl.conf``, pods, Ray, compose and other documents, job scripts,
Dockerfiles, DeepSpeed's environment file, HCCL's rank table, logs for what NCCL echoes, and
``mlnx_qos`` for what a port makes of the mark.
"""

from __future__ import annotations

import os
import re
from collections.abc import Mapping, Sequence
from dataclasses import field, replace
from pathlib import PurePath
from typing import IO, Final

from commcheck.analysis import Analysis
from commcheck.errors import UsageError
from commcheck.formats.qos import Qos
from commcheck.lazy import dataclass, regex
from commcheck.model import Evidence, Finding, Host, Result
from commcheck.nccl import ray
from commcheck.nccl.environment.documents import Declared, declared
from commcheck.nccl.environment.judge import ID, TITLE, judge
from commcheck.nccl.environment.model import (
    CONF,
    ECHO,
    Case,
    Environment,
    HostFacts,
    Layer,
    Port,
    Setting,
    effective,
    merged,
    untold,
)
from commcheck.nccl.environment.names import Version, is_kept, version_of
from commcheck.nccl.environment.ranktable import RankTable, rank_tables
from commcheck.nccl.environment.sources import (
    conf_file,
    plain_dump,
    process_environ,
    script,
)
from commcheck.nccl.inputs import Given, read_all
from commcheck.nccl.offline import read_logs
from commcheck.nccl.ruling import Judgement, rule_notes, rules_told
from commcheck.nccl.site import Site, SiteHost, site_of
from commcheck.report.counts import many
from commcheck.report.record import JOB, PlannedCheck

_ASSIGNS: Final = regex(r"^(?:declare -x |export )?[A-Za-z_]\w*=", re.MULTILINE)
_LOG: Final = regex(r"NCCL (?:INFO|WARN) |NCCL version \d|\[HCCL_ENV\]")
_SCRIPT: Final = regex(
    r"^#!|^#(?:SBATCH|PBS|BSUB) |^(?:FROM|ENV) |"
    r"^\s*(?:sudo )?(?:srun|mpirun|mpiexec|torchrun|deepspeed|docker|podman|nerdctl|ray|qsub|bsub)"
    r"\b",
    re.MULTILINE,
)
_NAMED: Final = regex(r"(?<![\w.$])(?<!\$\{)(?:TORCH_)?(?:NCCL|HCCL)_[A-Z][A-Z0-9_]{2,60}(?![\w*])")


@dataclass(slots=True)
class _Found:
    """What the files hold."""

    ranks: list[Environment] = field(default_factory=list)
    echoes: list[Environment] = field(default_factory=list)
    user_conf: list[Layer] = field(default_factory=list)
    etc_conf: list[Layer] = field(default_factory=list)
    conf_names: list[str] = field(default_factory=list)
    qos: list[Qos] = field(default_factory=list)
    tables: list[RankTable] = field(default_factory=list)
    logs: list[str] = field(default_factory=list)
    nothing: list[str] = field(default_factory=list)
    names: frozenset[str] = frozenset()  # of all files


def analyse_env(
    paths: Sequence[str],
    inventory: Mapping[str, Host] | None = None,
    *,
    stdin: IO[bytes] | None = None,
) -> Analysis:
    """Audits environments. Raises ``UsageError`` where nothing in the files is one."""
    try:
        site = site_of(inventory)
    except ValueError as error:
        raise UsageError(str(error)) from None
    files = _given(paths, stdin)
    found = _Found(names=frozenset(_file(each.name) for each in files))
    for given in files:
        _sort(given, found)
    if found.logs:
        _take_logs(found)
    case = _case(found, site)
    if not case.environments and not case.tables:
        raise UsageError(*(found.nothing or [f"{each}: no environment in it" for each in paths]))
    judgement = judge(case)
    return Analysis(
        checks=(PlannedCheck(ID, TITLE),),
        results=_results(judgement),
        notes=_notes(case, judgement, found),
        screen=_screen(case, judgement),
        facts=_facts(case, judgement),
    )


def _given(paths: Sequence[str], stdin: IO[bytes] | None) -> list[Given]:
    jobs = [path for path in paths if path.startswith(ray.SCHEME)]
    files = [path for path in paths if path not in jobs]
    return [
        *(Given(each, ray.Job.of(each, os.environ).environment()) for each in jobs),
        *read_all(files, stdin),
    ]


# --- which file is what -------------------------------------------------------------------------


def _sort(given: Given, found: _Found) -> None:
    name, text = PurePath(given.name).name, given.text
    if b"\0" in given.data:
        layer = process_environ(text, given.name)
        _add(found, given.name, Declared("", "process", (layer,)))
    elif name.endswith("nccl.conf"):
        is_etc = name in ("nccl.conf", "etc-nccl.conf") and "home" not in given.name
        layer = conf_file(text, given.name)
        (found.etc_conf if is_etc else found.user_conf).append(layer)
        found.conf_names.append(given.name)
    elif _LOG.search(text):
        found.logs.append(given.name)
    elif tables := rank_tables(text, given.name):
        found.tables += tables
        for one in declared(text, given.name):  # a manifest may hold pods beside it
            _add(found, f"{given.name} ({one.name})", one)
    elif "PFC configuration:" in text:
        found.qos.append(_qos(text))
    elif containers := declared(text, given.name) if not _ASSIGNS.match(text) else ():
        for one in containers:
            _add(found, f"{given.name} ({one.name})", one, _strange(text, containers))
    else:
        is_script = _SCRIPT.search(text) is not None and name != ".deepspeed_env"
        kind, read = ("script", script) if is_script else ("dump", plain_dump)
        layers = (read(text, given.name),)
        one = Declared("", kind, layers)
        _add(found, given.name, one, _strange(text, [one]))


def _file(path: str) -> str:
    return path.rpartition("/")[2]


def _strange(text: str, read: Sequence[Declared]) -> tuple[str, ...]:
    """Variables that a text names outside its comments, where none could be read."""
    if any(effective(one.layers)[0] or untold(one.layers) for one in read):
        return ()
    lines = (line for line in text.splitlines() if not line.lstrip().startswith("#"))
    return tuple(sorted({name for line in lines for name in _NAMED.findall(line) if is_kept(name)}))


def _add(found: _Found, who: str, one: Declared, strange: tuple[str, ...] = ()) -> None:
    settings, ignored = effective(one.layers)
    lost = tuple(each for layer in one.layers for each in layer.lost)
    sourced = (each for layer in one.layers for each in layer.unread)
    if not settings and one.shm_bytes is None and not lost:
        what = "no variable of NCCL, HCCL, UCX or PyTorch in it"
        if hidden := untold(one.layers):
            what = f"what {', '.join(sorted(hidden)[:3])} is set to stands elsewhere: {FORMS}"
        if strange:
            what = f"it names {', '.join(strange[:3])} in a form that is not read: {FORMS}"
        found.nothing.append(f"{who}: {what}")
        return
    found.ranks.append(
        Environment(
            who=(who,),
            kind=one.kind,
            settings=settings,
            ignored=ignored,
            unread=(*one.unread, *(each for each in sourced if _file(each) not in found.names)),
            lost=lost,
            untold=untold(one.layers),
            shm_bytes=one.shm_bytes,
            gpus=one.gpus,
            lacks_rdma=one.lacks_rdma,
            job=one.job,
            strange=strange,
        )
    )


FORMS: Final = "give lines NAME=value, a script, a pod's YAML or /proc/PID/environ"


def _take_logs(found: _Found) -> None:
    job = read_logs(found.logs)
    for proc in job.procs.values():
        if not proc.env:
            continue
        where = found.logs[0] if len(found.logs) == 1 else job.where(proc.first)
        settings = {n: Setting(v, where) for n, v in proc.env.items() if is_kept(n)}
        banner = next(iter(job.banners), "")
        found.echoes.append(
            Environment(
                who=(proc.label,),
                kind=ECHO,
                host=proc.host,
                settings=settings,
                version=proc.version or version_of(banner),
                torch=job.torch_version,
            )
        )
    for npu in job.hccl.npus.values():
        settings = {n: Setting(v, "HCCL's log") for n, v in npu.env.items() if is_kept(n)}
        if settings:
            found.echoes.append(Environment(who=(npu.label,), kind=ECHO, settings=settings))
    if not found.echoes:
        found.nothing += [
            f"{name}: no line of subsystem ENV (NCCL_DEBUG=INFO NCCL_DEBUG_SUBSYS=INIT,ENV)"
            for name in found.logs
        ]


_TRUST: Final = regex(r"^Priority trust state: (dscp|pcp|none)", re.MULTILINE)
_MAP: Final = regex(r"^\s*prio:([0-7]) dscp:([\d,]*)", re.MULTILINE)
_FLAGS: Final = regex(r"^\s*enabled((?:\s+[01]){8})\s*$", re.MULTILINE)


def _qos(text: str) -> Qos:
    """What of a pasted ``mlnx_qos`` is there: people paste its upper half."""
    flags, trust = _FLAGS.search(text), _TRUST.search(text)
    rows = [
        (int(code), int(prio))
        for prio, codes in _MAP.findall(text)
        for code in codes.split(",")
        if code
    ]
    return Qos(
        pfc=frozenset(p for p, flag in enumerate(flags[1].split()) if flag == "1")
        if flags
        else frozenset(),
        trust=trust[1] if trust and flags else None,
        dscp_prio=tuple(sorted(rows)) or None,
    )


# --- what is known of the hosts -----------------------------------------------------------------


def _case(found: _Found, site: Site) -> Case:
    conf = [*found.user_conf, *found.etc_conf]
    version = next((each.version for each in found.echoes if each.version), None)
    ranks = [_with_conf(one, conf, version, bool(found.user_conf)) for one in found.ranks]
    if conf and not ranks:
        settings, ignored = effective(conf)
        ranks = [
            Environment(
                who=tuple(found.conf_names),
                kind=CONF,
                settings=settings,
                ignored=ignored,
                version=version,
            )
        ]
    environments = merged([*ranks, *found.echoes])
    hosts = {name: _host_facts(told, found.qos) for name, told in site.hosts.items()}
    # A file does not say on which host it counts: what holds for all of them holds there too.
    alike = {repr(replace(facts, name="")) for facts in hosts.values()}
    if len(alike) < 2:
        hosts[""] = next(iter(hosts.values()), _host_facts(SiteHost(""), found.qos))
    return Case(environments, hosts, tuple(found.tables))


def _with_conf(
    one: Environment, conf: Sequence[Layer], version: Version | None, has_user_conf: bool
) -> Environment:
    layers = [Layer(one.settings, one.ignored, one.untold), *conf]
    settings, ignored = effective(layers)
    unread = one.unread
    path = one.get("NCCL_CONF_FILE")
    if path and not has_user_conf:
        unread = (*unread, f"NCCL_CONF_FILE={path}")
    return replace(one, settings=settings, ignored=ignored, version=version, unread=unread)


_LINKS: Final = {"RoCE": "Ethernet", "IB": "InfiniBand"}


def _host_facts(told: SiteHost, qos: Sequence[Qos]) -> HostFacts:
    link = _LINKS.get(told.link or "") or ("Ethernet" if qos else None)
    marking = tuple(Port(hca="", link="Ethernet", qos=each, tclass_known=True) for each in qos)
    return HostFacts(
        name=told.machine,
        marking=marking,
        rails=told.nics,
        rdma=told.rdma,
        link=link,
        nvlink=told.nvlink,
        gdr=told.gdr,
        rail_only=told.rail_only,
        ecmp=told.ecmp,
        network=told.network,
    )


# --- what leaves --------------------------------------------------------------------------------


def _results(judgement: Judgement) -> tuple[Result, ...]:
    findings = tuple(
        Finding(
            check=ID,
            host=JOB,
            subject="",
            verdict=verdict,
            evidence=tuple(
                Evidence(str(place), None, 0.0, "")
                for place in _places(verdict.measured.get("evidence"))
            ),
        )
        for verdict in judgement.verdicts
    )
    return (Result(check=ID, host=JOB, findings=findings),)


def _places(told: object) -> list[object]:
    return told if isinstance(told, list) else []


def _notes(case: Case, judgement: Judgement, found: _Found) -> tuple[str, ...]:
    notes = rule_notes(judgement.judged, judgement.not_judged)
    notes += [f"worth knowing: {remark}" for remark in judgement.remarks]
    notes += [
        f"not read, and it counts too: {each}"
        for each in sorted({each for one in case.environments for each in one.unread})
    ]
    notes += [
        f"set to what is not known here: {each}"
        for each in sorted({each for one in case.environments for each in one.shown_untold})
    ]
    notes += found.nothing
    return tuple(notes)


def _screen(case: Case, judgement: Judgement) -> tuple[str, ...]:
    lines = []
    for one in case.environments[:8]:
        more = f" and {len(one.who) - 1} more" if len(one.who) > 1 else ""
        lines.append(f"{one.who[0]}{more}: {many(len(one.settings), 'variable')}")
        lines += [
            f"  {one.show(name)}" for name in sorted(one.settings) if name.startswith("NCCL_")
        ][:40]
    lines += [
        f"{table.where}: a rank table, NPUs: {len(table.npus)}, servers: {table.servers}"
        for table in case.tables
    ]
    lines.append(rules_told(judgement))
    return tuple(lines)


def _facts(case: Case, judgement: Judgement) -> dict[str, object]:
    return {
        "environments": [
            {
                "who": list(one.who),
                "kind": one.kind,
                "host": one.host,
                "version": list(one.version) if one.version else None,
                "settings": {
                    name: {"value": setting.value, "where": setting.where}
                    for name, setting in sorted(one.settings.items())
                },
                "ignored_lines": [where for where, _ in one.ignored],
                "not_read": list(one.unread),
            }
            for one in case.environments
        ],
        "rules": {
            rule: {"state": ruling.state, "why": ruling.why, "turn_on": ruling.turn_on}
            for rule, ruling in judgement.rulings.items()
        },
    }
