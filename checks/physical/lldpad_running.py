"""No lldpad runs where PFC is set by hand.

Why: lldpad brings its own DCB settings to every port when it starts or the link comes back, and
overwrites PFC and trust that a script set. It comes with some distributions' defaults.
Reads: ``pgrep -x lldpad``. One verdict for each host.
By hand: ``systemctl status lldpad``; mlnx_qos prints a warning on its first line while it runs.
Mend: ``systemctl disable --now lldpad`` where settings are static; its DCBX ends with it, so read
PFC and trust of every port again afterwards.
Healthy though odd: fleets that set PFC through lldpad on purpose declare ``commcheck_dcbx: lldpad``
(and then it must run). lldpd is another daemon, only listens, and is welcome.
"""

from __future__ import annotations

import re

from commcheck.check import (
    Check,
    Nothing,
    Reader,
    expects,
    failed,
    not_applicable,
    passed,
    reads,
    warned,
)
from commcheck.command import Command, Output
from commcheck.errors import CommandFailed, ParseError
from commcheck.expect import DCBX, FLOW_CONTROL
from commcheck.lazy import dataclass
from commcheck.model import Cause, Machine, Remedy, Verdict, Wanted, Words


def parse(output: Output) -> tuple[int, ...]:
    """Process ids; pgrep's exit code 1 is "none"."""
    if output.rc == 1 and not output.text.strip() and not output.stderr.strip():
        return ()
    if output.rc != 0:
        raise CommandFailed(f"pgrep failed with exit code {output.rc}: {output.complaint}")
    lines = output.text.split("\n")
    if lines[-1] or not lines[:-1] or not all(re.fullmatch(r"\d{1,10}", pid) for pid in lines[:-1]):
        raise ParseError("pgrep", output.text, "a process id on each line")
    return tuple(map(int, lines[:-1]))


LLDPAD = Reader(tool="pgrep", commands=(Command(("pgrep", "-x", "lldpad")),), parse=parse)


@dataclass(frozen=True, slots=True)
class Seen:
    """Processes of that name."""

    pids: tuple[int, ...] = reads(LLDPAD)


@dataclass(frozen=True, slots=True)
class Want:
    """Who sets PFC."""

    dcbx: Wanted[str] = expects(DCBX)
    flow_control: Wanted[str] = expects(FLOW_CONTROL)


STOP = Remedy(
    command="systemctl disable --now lldpad",
    effect=Words(
        "Ends its DCBX: PFC that it brought disappears. Read PFC and trust of every port again.",
        "停止其 DCBX：由其下发的 PFC 会消失。之后重新读取各端口的 PFC 与信任模式。",
    ),
    precondition=Words(
        "No job on the host, static settings are in place and come back at boot.",
        "主机上没有作业，静态配置已就绪并能在开机时恢复。",
    ),
)
START = Remedy(
    command="systemctl enable --now lldpad",
    effect=Words(
        "Sets PFC and trust of every port as its configuration says.",
        "按其配置下发各端口的 PFC 与信任模式。",
    ),
    precondition=Words(
        "No job on the host; its configuration is the fleet's.",
        "主机上没有作业；其配置与集群一致。",
    ),
)

RUNS = Cause(
    slug="lldpad-running",
    title=Words("lldpad runs beside static PFC", "lldpad 与静态 PFC 并存"),
    meaning=Words(
        "It may overwrite PFC and trust of any port, at its next start or link flap.",
        "其重启或链路抖动时可能覆盖任一端口的 PFC 与信任设置。",
    ),
    remedies=(STOP,),
)
MISSING = Cause(
    slug="lldpad-missing",
    title=Words("lldpad does not run", "lldpad 未运行"),
    meaning=Words(
        "The fleet sets PFC through lldpad, and nothing keeps it up on this host.",
        "集群通过 lldpad 配置 PFC，但该主机上没有运行。",
    ),
    remedies=(START,),
)


def judge(seen: Seen, _machine: Machine, want: Want, _limits: Nothing) -> Verdict:
    """Running is a warning: it may overwrite, and need not have."""
    if want.flow_control.value == "none":
        return not_applicable(f"flow control is none: {want.flow_control.origin}")
    count = len(seen.pids)
    measured = {"lldpad_processes": count}
    if want.dcbx.value == "lldpad":
        if count:
            return passed("lldpad runs, as declared", measured=measured)
        return failed(MISSING, f"lldpad does not run, want it: {want.dcbx.origin}")
    if not count:
        return passed("no lldpad runs", measured=measured)
    pids = ", ".join(map(str, seen.pids[:4]))
    return warned(
        RUNS,
        f"lldpad runs (process {pids}), want PFC set by {want.dcbx.value} alone",
        measured=measured,
    )


CHECK = Check(
    id="physical.lldpad-running",
    title=Words("No lldpad beside static PFC", "静态 PFC 时未运行 lldpad"),
    subject=Machine,
    seen=Seen,
    want=Want,
    judge=judge,
    causes=(RUNS, MISSING),
    platforms=frozenset({"gpu-roce"}),
)
