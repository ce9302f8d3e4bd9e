"""A log audit of files: what ``commcheck analyze log`` does. The only place here that reads files.

Files, folders, globs and ``-`` for standard input; plain, gz, bz2 or xz; and jobs of Ray.
"""

from __future__ import annotations

import bz2
import glob
import gzip
import lzma
import os
from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import IO, Final

from commcheck.analysis import Analysis
from commcheck.collector import spare
from commcheck.errors import UsageError
from commcheck.files import Readable, opened
from commcheck.lazy import dataclass
from commcheck.model import Evidence, Finding, Host, Result, Verdict
from commcheck.nccl import ray
from commcheck.nccl.as_json import facts_of
from commcheck.nccl.case import Case
from commcheck.nccl.facts import Job
from commcheck.nccl.judge import ID, TITLE, judge
from commcheck.nccl.pipeline import scan, scan_apart
from commcheck.nccl.reader import Desk, FileReader
from commcheck.nccl.rules_unnamed import first_error
from commcheck.nccl.ruling import Judgement, rule_notes, rules_told
from commcheck.nccl.site import site_of
from commcheck.report.counts import many
from commcheck.report.find import files_below
from commcheck.report.ranges import fold_hosts, natural
from commcheck.report.record import JOB, PlannedCheck

STDIN: Final = "-"
CHUNK_BYTES: Final = 1 << 18
APART_BYTES: Final = 32 << 20
"""Below this a second process costs more than it saves."""


@dataclass(frozen=True, slots=True)
class _Input:
    """One file to read, and how long ago it last grew; None: it is closed."""

    name: str
    age_s: float | None
    size: int
    chunks: Iterable[bytes] | None = None  # of what is no file here


@spare()
def analyse_logs(
    paths: Sequence[str],
    inventory: Mapping[str, Host] | None = None,
    *,
    stdin: IO[bytes] | None = None,
    processes: int = 1,
    now_s: float | None = None,
) -> Analysis:
    """Audits logs. ``now_s``: the time in seconds, to tell a growing file from a closed one.

    Raises ``UsageError`` where a path names nothing readable, or an inventory variable is wrong.
    """
    try:
        site = site_of(inventory)
    except ValueError as error:
        raise UsageError(str(error)) from None
    case = Case(read_logs(paths, stdin=stdin, processes=processes, now_s=now_s), site)
    judgement = judge(case)
    return Analysis(
        checks=(PlannedCheck(ID, TITLE),),
        results=(_result(case, judgement),),
        notes=_notes(case, judgement),
        screen=_screen(case, judgement),
        facts={**facts_of(case), "rules": _rules(judgement)},
    )


def read_logs(
    paths: Sequence[str],
    *,
    stdin: IO[bytes] | None = None,
    processes: int = 1,
    now_s: float | None = None,
) -> Job:
    """The facts of all lines of all files, in the order of their names."""
    desk = Desk()
    for source in _inputs(paths, stdin, now_s):
        reader = FileReader(desk, source.name)
        index = len(desk.job.files) - 1
        if source.age_s is not None:
            desk.job.file_age_s[index] = source.age_s
        if processes > 1 and source.size >= APART_BYTES:
            lines, cut, error = scan_apart(source.name, _chunks, reader)
        else:
            found = source.chunks if source.chunks is not None else _chunks(source.name)
            lines, cut, error = scan(found, reader)
        if error:
            desk.job.unreadable[index] = error
        desk.job.stats.lines += lines
        reader.close(cut=cut)
    return desk.finish()


def _pieces(file: Readable) -> Iterator[bytes]:
    while chunk := file.read(CHUNK_BYTES):
        yield chunk


def _chunks(name: str) -> Iterable[bytes]:
    path = Path(name)
    with opened(path) as raw:
        magic = raw.read(6)
        raw.seek(0)
        if magic[:2] == b"\x1f\x8b":
            with gzip.GzipFile(fileobj=raw) as file:
                yield from _pieces(file)
        elif magic[:3] == b"BZh":
            with bz2.BZ2File(raw) as file:
                yield from _pieces(file)
        elif magic == b"\xfd7zXZ\x00":
            with lzma.LZMAFile(raw) as file:
                yield from _pieces(file)
        else:
            yield from _pieces(raw)


def _inputs(paths: Sequence[str], stdin: IO[bytes] | None, now_s: float | None) -> list[_Input]:
    """Each file once, by name: the order in which they are named changes nothing.

    Numbers count as such: pid 9900 of an earlier attempt comes before 10050 of the next.
    """
    problems, found, others = [], dict[str, Path](), dict[str, _Input]()
    for given in paths:
        if given == STDIN:
            others[STDIN] = _Input(STDIN, None, 0, _pieces(stdin) if stdin is not None else ())
            continue
        if given.startswith(ray.SCHEME):
            others |= {each.name: each for each in _of_ray(given)}
            continue
        # Path.glob takes no absolute pattern.
        named = [given] if Path(given).exists() else glob.glob(given)  # noqa: PTH207
        if not named:
            problems.append(f"{given}: no such file, folder or pattern")
        for path in map(Path, named):
            files = files_below(path) if path.is_dir() else [path]
            if not files:
                problems.append(
                    f"{path}: the folder holds no file, or none but those of runs of commcheck"
                )
            found |= {os.path.realpath(file): file for file in files}
    problems += [
        f"{file}: zstd is not read: zstd -dc {file} | commcheck analyze log -"
        for file in found.values()
        if file.suffix == ".zst"
    ]
    if problems:
        raise UsageError(*problems)
    inputs = [*others.values(), *(_input(path, now_s) for path in found.values())]
    return sorted(inputs, key=lambda each: natural(each.name))


def _of_ray(source: str) -> Iterator[_Input]:
    """The logs of a job that Ray keeps. One that runs may write at any moment."""
    job = ray.Job.of(source, os.environ)
    for each in job.logs():
        yield _Input(each.name, 0.0 if job.is_live else None, 0, each.chunks)


def _input(path: Path, now_s: float | None) -> _Input:
    try:
        with opened(path) as file:
            stat = os.fstat(file.fileno())
    except OSError as error:
        raise UsageError(f"{path}: {error.strerror}") from error
    age = None if now_s is None else max(0.0, now_s - stat.st_mtime)
    return _Input(str(path), age, stat.st_size)


# --- what leaves --------------------------------------------------------------------------------


def _result(case: Case, judgement: Judgement) -> Result:
    texts = {case.job.where(error.at): error.text for error in case.errors}
    texts |= {case.job.where(diag.at): diag.text for diag in case.job.diag}
    texts |= {case.job.where(code.at): code.text for code in case.job.hccl.said}
    findings = tuple(
        Finding(
            check=ID,
            host=JOB,
            subject="",
            verdict=verdict,
            evidence=_evidence(verdict, texts),
        )
        for verdict in judgement.verdicts
    )
    return Result(check=ID, host=JOB, findings=findings)


def _evidence(verdict: Verdict, texts: Mapping[str, str]) -> tuple[Evidence, ...]:
    places = verdict.measured.get("evidence")
    if not isinstance(places, list):
        return ()
    return tuple(Evidence(str(p), None, 0.0, texts.get(str(p), "")) for p in places)


def _rules(judgement: Judgement) -> dict[str, dict[str, str]]:
    return {
        rule: {"state": ruling.state, "why": ruling.why, "turn_on": ruling.turn_on}
        for rule, ruling in judgement.rulings.items()
    }


def _notes(case: Case, judgement: Judgement) -> tuple[str, ...]:
    job = case.job
    notes = rule_notes(judgement.judged, judgement.not_judged)
    if case.superseded:
        gone = many(len(case.superseded), "process", "processes")
        notes.append(f"not judged: {gone} of earlier attempts")
    if job.rccl:
        notes.append(
            f"this is RCCL, not NCCL ({job.where(job.rccl)}): rules on NVIDIA do not apply"
        )
    for text, count in job.stats.unknown_warnings.most_common(5):
        notes.append(f"a warning that commcheck does not know, {count} times: {text}")
    notes += [f"{job.files[index]}: {why}" for index, why in job.unreadable.items()]
    notes += [
        f"{job.files[index]} ends in the middle of a line" for index in job.stats.cut_files[:5]
    ]
    if job.pasted_env:
        given = ", ".join(f"{name}={value}" for name, value in sorted(job.pasted_env.items())[:20])
        notes.append(f"settings in the text: {given}")
    return tuple(notes)


JOBS_SHOWN: Final = 8


def _screen(case: Case, judgement: Judgement) -> tuple[str, ...]:
    job = case.job
    lines = [_line_of(each) for each in case.jobs[:JOBS_SHOWN] if each.world is not None]
    if len(case.jobs) > JOBS_SHOWN:
        lines.append(f"... and {many(len(case.jobs) - JOBS_SHOWN, 'more job')}")
    if job.hccl.any:
        processes = many(len(job.hccl.npus), "process", "processes")
        ranks = many(job.hccl.nranks, "rank") if job.hccl.nranks else "unknown ranks"
        servers = many(job.hccl.servers, "server") if job.hccl.servers else "unknown servers"
        codes = many(len(job.hccl.codes), "error code")
        lines.append(f"HCCL: {processes}, {ranks} on {servers}, {codes}")
    read = f"{many(job.stats.lines, 'line')} of {many(len(job.files), 'file')} read"
    lines.append(f"{read}, {job.stats.nccl_lines:,} of NCCL")
    root = next((error for each in case.jobs if (error := first_error(each))), None)
    if root is not None:
        lines.append(f"First error: {root.proc.label}, {job.where(root.at)}: {root.text[:160]}")
    lines.append(rules_told(judgement))
    return tuple(lines)


def _line_of(case: Case) -> str:
    """One job: its version, ranks, hosts and network."""
    comm = case.world
    seen, ranks = (len(comm.members), comm.nranks) if comm else (0, 0)
    version = ".".join(map(str, case.version)) if case.version else "of unknown version"
    return (
        f"NCCL {version}: {seen} of {many(ranks, 'rank')} seen on {fold_hosts(case.hosts)}, "
        f"network {case.network or 'not told'}, {many(len(case.comms), 'communicator')}"
    )
