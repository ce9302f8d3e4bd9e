"""What launchers, NCCL, HCCL and perftest say when a run breaks, by the stable part of the text.

One generic block ("unable to reliably start one or more daemons") follows many different causes:
the specific line stands above it, so generic lines and unwinding frames are marked as
consequences. An error that names a remote process points away from the rank that printed it.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from dataclasses import replace
from typing import Final

from commcheck.command import whole_number
from commcheck.jobs.lines import Line
from commcheck.jobs.reading import Failure
from commcheck.lazy import dataclass, regex
from commcheck.nccl.errors import GOES_ON, classify, event_class
from commcheck.nccl.header import parse_head


@dataclass(frozen=True, slots=True)
class _Pattern:
    slug: str
    form: re.Pattern[str]
    consequence: bool = False


def _p(slug: str, form: str, *, consequence: bool = False) -> _Pattern:
    return _Pattern(slug, regex(form), consequence)


_TASK: Final = r"srun: error: (?P<host>[\w.-]+): tasks? (?P<rank>\d+)[\d,-]*: "

# Named groups host and rank go to the failure, all others to its detail. First match wins.
_PATTERNS: Final = (
    # --- ssh and the shell on the far side
    _p("ssh-host-key", r"Host key verification failed"),
    _p("ssh-auth", r"(?<![\w.-])(?:(?P<user>[\w.-]+)@)?(?P<host>[\w.-]+): Permission denied \("),
    _p("ssh-auth", r"Permission denied \((?:publickey|password|gssapi|keyboard)"),
    _p("unresolved", r"Could not resolve hostname (?P<host>[\w.-]+)"),
    _p("unreachable", r"ssh: connect to host (?P<host>\S+) port (?P<port>\d+): (?P<why>.+)"),
    _p(
        "remote-mpi-missing",
        r"(?:^|\W)(?P<program>orted|prted|hydra_pmi_proxy): .*"
        r"(?:not found|未找到命令|No such file)",
    ),
    _p("remote-mpi-missing", r"A daemon \(pid \d+\) died unexpectedly with status 127"),
    # --- Open MPI, PRRTE
    _p("binary-missing", r"was unable to find the specified executable file"),
    _p("binary-missing", r"could not access (?:or execute )?an executable"),
    _p(
        "not-enough-slots",
        r"There are not enough slots available in the system to satisfy the (?P<requested>\d+)",
    ),
    _p("hostfile-missing", r"unable to open the hostfile"),
    _p("root-refused", r"has detected an attempt to run as root"),
    _p("daemon-lost", r"has lost communication with a remote daemon"),
    _p("launcher-timeout", r"The user-provided time limit for job execution has been reached"),
    _p(
        "killed-by-signal",
        r"noticed that process rank (?P<rank>\d+) with PID \d+ on node (?P<host>[\w.-]+) "
        r"exited on signal (?P<signal>\d+)",
    ),
    _p("killed-by-signal", r"\[(?P<host>[\w.-]+):\d+\] Signal: (?P<signal>[A-Z][\w ]+) \(\d+\)"),
    _p("mpi-abort", r"MPI_ABORT was invoked on rank (?P<rank>\d+)", consequence=True),
    # --- Slurm
    _p("host-out-of-memory", _TASK + r"Out Of Memory"),
    _p("host-out-of-memory", r"Detected \d+ oom[_-]kill event"),
    _p("killed-by-signal", _TASK + r"(?P<signal>Killed|Segmentation fault|Bus error|Aborted)"),
    _p("exit-status", _TASK + r"Exited with exit code (?P<exit_code>\d+)", consequence=True),
    _p("launcher-timeout", r"CANCELLED AT \S+ DUE TO TIME LIMIT"),
    _p("daemon-lost", r"srun: error: Node failure on (?P<host>[\w.-]+)"),
    _p("daemon-lost", r"CANCELLED AT \S+ DUE TO NODE FAILURE", consequence=True),
    _p("srun-no-pmi", r"OMPI was not built with SLURM's PMI|direct launched using \"srun\""),
    _p("daemons-not-started", r"unable to reliably start one or more daemons", consequence=True),
    _p("exit-status", r"Process name: \[\[\d+,\d+\],(?P<rank>\d+)\]", consequence=True),
    # --- hydra, MPICH
    _p(
        "binary-missing",
        r"\[proxy:\d+:\d+@(?P<host>[\w.-]+)\] .*execvp error on file (?P<executable>\S+)",
    ),
    _p("hostname-unknown", r"gethostbyname failed, (?P<host>[\w.-]+)"),
    _p("hydra-terminated", r"BAD TERMINATION OF ONE OF YOUR", consequence=True),
    # --- the dynamic loader
    _p(
        "library-missing",
        r"(?<!\S)(?P<program>\S+): error while loading shared libraries: (?P<library>[\w.+-]+)",
    ),
    _p("library-mismatch", r"(?<!\S)(?P<program>\S+): symbol lookup error: .*undefined symbol"),
    _p("library-mismatch", r"version `(?P<version>[\w.]+)' not found \(required by"),
    # --- nccl-tests
    _p(
        "cuda-out-of-memory",
        r"(?:(?<![\w.-])(?P<host>[\w.-]+): Test (?:CUDA|NCCL) failure .*)?out of memory",
    ),
    _p(
        "fabric-manager-down",
        r"(?<![\w.-])(?P<host>[\w.-]+): Test CUDA failure .*system not yet initialized",
    ),
    _p(
        "driver-mismatch",
        r"(?<![\w.-])(?P<host>[\w.-]+): Test CUDA failure .*driver version is insufficient",
    ),
    _p(
        "too-many-gpus",
        r"Invalid number of GPUs: (?P<requested>\d+) requested but only (?P<found>\d+)",
    ),
    _p("test-timeout", r"(?<![\w.-])(?P<host>[\w.-]+): Test timeout \((?P<seconds>\d+)s\)"),
    _p("bad-option", r"invalid option|invalid size specified for"),
    # --- hccl_test
    _p("hccl-root-info", r"Process (?P<rank>\d+) HcclGetRootInfo failed"),
    _p(
        "hccl-root-info", r"Process (?P<rank>\d+) received invalid data from root", consequence=True
    ),
    _p("hccl-error", r"hccl interface return err \S+, retcode: ?(?P<retcode>\d+)"),
    _p("acl-error", r"acl interface return err \S+, retcode: ?(?P<retcode>\d+)"),
    _p("hccl-error", r"hccl_op_base execute failed"),
    # --- perftest
    _p("server-not-listening", r"Couldn't connect to (?P<host>[\w.-]+):(?P<port>\d+)"),
    _p("port-in-use", r"Couldn't listen to port (?P<port>\d+)"),
    _p("no-device", r"IB device (?P<device>\S+) not found"),
    _p("qp-error", r"Failed status (?P<status>\d+): wr_id \d+ syndrome? (?P<syndrome>0x[0-9a-f]+)"),
    _p("no-gpu-build", r"unrecognized option '(?P<option>--use_(?:cuda|rocm)[^']*)'"),
    _p(
        "perftest-stopped",
        r"Completion with error|Unable to init the socket|Failed to complete run",
        consequence=True,
    ),
)

# NCCL's own warnings are the root of what the ranks then report; their forms are those of the log
# audit. Names of kinds that a run's output always had; others are called nccl-<kind>.
_KINDS: Final = {"connect": "bootstrap-connect", "gpu-memory": "cuda-out-of-memory"}
NIC_EVENT: Final = "nccl-async"
"""A NIC failed or lost its link: a run may end over it, or go on over what is left."""

_RETRY: Final = "12"
_VENDOR: Final = regex(r"vendor[ _]err[ =](\d{1,9})")
# After any other: what a rank reports is often secondary.
_REPORTED: Final = _p(
    "nccl-failure", r"(?<![\w.-])(?P<host>[\w.-]+): (?:Test )?NCCL failure \S+ '(?P<error>[^'/]*)"
)
_CUDA: Final = _p(
    "cuda-failure", r"(?<![\w.-])(?P<host>[\w.-]+): (?:Test )?CUDA failure \S+ '(?P<error>[^']*)"
)
_UNWIND: Final = _p(
    "unwinding", r"^ ?\.\. (?P<host>[\w.-]+) pid (?P<pid>\d+): Test failure", consequence=True
)
_ROW_OR_HEAD: Final = regex(r"#|\s*\d+\s+[\d|]|\s*$")  # most lines, and never a failure
_FLUSH_STATUS: Final = 5

_DETAILS: Final = (
    ("binary-missing", "host", regex(r"^Node: +(\S+)")),
    ("binary-missing", "executable", regex(r"^Executable: +(\S+)")),
    ("hostfile-missing", "path", regex(r"^ {4}(/\S+)$")),
    ("daemon-lost", "host", regex(r"Remote daemon: .* on node ([\w.-]+)")),
    ("launcher-timeout", "seconds", regex(r"Timeout: (\d+) seconds")),
    ("hydra-terminated", "host", regex(r"RUNNING AT ([\w.-]+)")),
    ("hydra-terminated", "exit_code", regex(r"EXIT CODE: +(\d+)")),
    ("exit-status", "exit_code", regex(r"Exit code: +(\d+)")),
)
_DETAIL_LINES: Final = 14


def failure_on(line: Line) -> Failure | None:
    """The failure that a line tells, if any."""
    if _ROW_OR_HEAD.match(line.text):
        return None
    for pattern in (_UNWIND, *_PATTERNS, _REPORTED, _CUDA):
        match = pattern.form.search(line.text)
        if match is not None:
            return _failure(pattern, match, line)
    return None


def warning_on(record: str, number: int) -> Failure | None:
    """The failure that an NCCL warning of any version tells, if any.

    None for what is no failure by itself: NCCL goes on, and what ends the run is told behind it.
    """
    at = record.find(" NCCL WARN ")
    head = parse_head(record, at, ()) if at > 0 else None
    known = classify(record[at + 11 :], head.file) if head else None
    if head is None or known is None:
        return None
    form, values = known
    if form.kind in GOES_ON and (form.kind != "async" or event_class(values) == "news"):
        return None
    detail: dict[str, object] = {}
    slug = _KINDS.get(form.kind, f"nccl-{form.kind}")
    if form.kind == "completion":
        status = values.get("status") or values.get("old") or ""
        slug = "ib-retry-exceeded" if status == _RETRY else "ib-completion-error"
        detail = {"status": int(status), "hca": values.get("hca", "")}
        if vendor := _VENDOR.search(record):
            detail["vendor_err"] = int(vendor[1])
    if "peer" in values:
        detail["peer"] = re.sub(r"<\d+>$", "", values["peer"])
    # Status 5 is a flush after another error on the same queue pair.
    follows = form.secondary or detail.get("status") == _FLUSH_STATUS
    return Failure(slug, record.strip()[:300], number, head.host, None, detail, follows)


def _failure(pattern: _Pattern, match: re.Match[str], line: Line) -> Failure:
    groups = {key: value for key, value in match.groupdict().items() if value is not None}
    host = groups.pop("host", None)
    rank = groups.pop("rank", None)
    return Failure(
        slug=pattern.slug,
        text=line.text.strip()[:300],
        line=line.number,
        host=host,
        rank=int(rank) if rank is not None else line.rank,
        detail={key: _told(value) for key, value in groups.items()},
        consequence=pattern.consequence,
    )


def _told(value: str) -> int | str:
    number = whole_number(value)
    return value if number is None else number


def _enriched(failure: Failure, following: Iterable[Line]) -> Failure:
    """With what the block below the line says (node, executable, limit)."""
    host, detail = failure.host, dict(failure.detail)
    for line in following:
        for slug, name, form in _DETAILS:
            match = form.search(line.text) if slug == failure.slug else None
            if match is None:
                continue
            if name == "host":
                host = host or match[1]
            else:
                detail.setdefault(name, _told(match[1]))
    return Failure(
        failure.slug,
        failure.text,
        failure.line,
        host,
        failure.rank,
        detail,
        failure.consequence,
    )


def gather(found: Sequence[Failure], lines: Sequence[Line]) -> tuple[Failure, ...]:
    """Failures with their details, each kind once per host, own causes before consequences.

    Where NCCL warned before, what ranks report afterwards follows from it; so does an error that
    names a remote process.
    """
    with_blocks = {slug for slug, _, _ in _DETAILS}
    warned = any(" NCCL WARN " in each.text and not each.consequence for each in found)
    told: dict[tuple[str, str | None], Failure] = {}
    for each in found:
        failure = each
        if failure.slug in with_blocks:
            after = [line for line in lines if 0 < line.number - failure.line <= _DETAIL_LINES]
            failure = _enriched(failure, after)
        remote = "remote process" in str(failure.detail.get("error", ""))
        if failure.slug == "nccl-failure" and (warned or remote):
            failure = replace(failure, consequence=True)
        told.setdefault((failure.slug, failure.host), failure)
    return tuple(sorted(told.values(), key=lambda each: (each.consequence, each.line)))


def read_failures(lines: Sequence[Line]) -> tuple[Failure, ...]:
    """The failures in a text that has no table (launchers, perftest)."""
    found = [failure for line in lines if (failure := failure_on(line)) is not None]
    return gather(found, lines)
