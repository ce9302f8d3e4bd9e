"""INFO messages of every version into facts, by their first word.

A message that may have lost its end (``whole=False``) adds only what its form proves complete.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import TYPE_CHECKING, Final

from commcheck.lazy import regex
from commcheck.nccl import errors, wrappers
from commcheck.nccl.facts import (
    ERRORS_PER_PROCESS,
    LADDERS_PER_PROCESS,
    SAMPLES_MOST,
    UNKNOWN_PER_PROCESS,
    Error,
    Job,
    Ladder,
    Nic,
    Process,
)
from commcheck.nccl.life import PLACED, Life
from commcheck.nccl.places import At

if TYPE_CHECKING:
    from commcheck.nccl.reader import Desk

Handler = Callable[["Desk", Process, int, str, At, str, bool], None]

BANNER: Final = regex(
    r"NCCL version (\d{1,9})\.(\d{1,9})\.(\d{1,9})([^\s+]*)\+cuda(\d{1,9})\.(\d{1,9})"
)
_ENV: Final = regex(r"(NCCL_[A-Z0-9_]+) set (?:by environment )?to (.*)")
_WORDS: Final = frozenset(
    [
        "ALGO",
        "PROTO",
        "TOPO_FILE",
        "GRAPH_FILE",
        "SOCKET_IFNAME",
        "SOCKET_FAMILY",
        "COMM_ID",
        "HOSTID",
        "P2P_LEVEL",
        "NET_GDR_LEVEL",
        "IB_ADDR_FAMILY",
        "IB_ADDR_RANGE",
        "LAUNCH_MODE",
        "NETDEVS_POLICY",
        "NET_PLUGIN",
        "TUNER_PLUGIN",
        "PROFILER_PLUGIN",
        "ENV_PLUGIN",
    ]
)
"""Parameters that are text: a dot at the end belongs to the value (NCCL debug documentation)."""

_ADDRESS: Final = r"([\w.-]+):([0-9a-fA-F.:]+(?:%[\w.-]+)?)<\d+>"
_OOB: Final = regex(rf"Bootstrap ?: Using (?:\[0\])?{_ADDRESS}")  # numbered up to 2.7
_USING: Final = regex(rf"NET/IB ?: Using (.*?) ?(?:\[RO\])?; OOB (?:{_ADDRESS}|:)")
# HPC-X marks the devices that can reduce in the network.
_ONE_PORT: Final = r"([\w-]+):(\d{1,3})/(\w+)(?:/SHARP)?"
_NIC: Final = regex(rf"\[(\d{{1,3}})\](?:{_ONE_PORT}|=?\{{([^}}]*)\}})")
_PORT: Final = regex(rf"\[\d+\] ?{_ONE_PORT}")
_GDR: Final = regex(
    r"GPU Direct RDMA (Enabled|Disabled) for GPU (\S+) / HCA (\S+) "
    r"\(distance (\d{1,9}) [<=>]+ (\d{1,9})\)"
)
_GDR_PATH: Final = regex(
    r"GPU Direct RDMA (Enabled|Disabled) for (GPU/\S+) \(rank \d+\) - (NET/\S+) "
    r"\(.*?distance (\d{1,9}) [<=>]+ (\d{1,9})\)"
)
_GDR_HCA: Final = regex(r"NET/[\w ]+ : GPU Direct RDMA (Enabled|Disabled) for HCA \d+ '([^']+)'")
_CHANNELS: Final = regex(r"(\d{1,9}) coll channels, ")
_INIT: Final = regex(
    r"Init timings(?: - \w+)?: rank (\d{1,9}) nranks (\d{1,9}) total (\d+(?:\.\d+)?) \(([^)]*)\)"
)
_PROVIDER: Final = regex(
    r"NET/OFI Selected [Pp]rovider is ([\w;-]{1,60})(?:.{0,80}\(found (\d{1,4}) nics?\))?"
)
_LADDER: Final = regex(r"[\w./+-]{1,200}:\d{1,6}(?: \(\w+\))? -> ([1-68])\b.{0,40}")
_AGAIN: Final = regex(r"connect to (\S{1,80})<\d{1,5}> returned ([A-Z][\w ]{1,60}), retrying")
_NVLS: Final = regex(r"NVLS multicast support is (not )?available on dev \d+.*")


class Errors:
    """Warnings of all processes, the first ones kept."""

    def __init__(self, job: Job) -> None:
        self._job = job

    def warn(self, proc: Process, text: str, at: At, when: str, file: str = "") -> None:
        """A WARN line with the file of its head, or a text that NCCL prints as one."""
        proc.lines += 1
        proc.last = at
        found = errors.classify(text, file)
        most = ERRORS_PER_PROCESS
        if found is None:
            if any(word in text for word in errors.HARMLESS) or not text.strip():
                return
            unknown = self._job.stats.unknown_warnings
            key = re.sub(r"0x[0-9a-f]+|\d+", "N", text)[:160]
            if key in unknown or len(unknown) < SAMPLES_MOST:
                unknown[key] += 1
            most = UNKNOWN_PER_PROCESS
            found = errors.UNKNOWN, {}
        form, values = found
        if len(proc.errors) >= most:
            proc.errors_more += 1
            return
        time = wrappers.time_s(when) if when else None
        proc.errors.append(Error(form.kind, text[:400], at, proc, time, form.secondary, values))


def _channel(
    desk: Desk, proc: Process, tid: int, text: str, at: At, _when: str, whole: bool
) -> None:
    if not whole or not desk.registry.channel(proc, tid, text, at):
        desk.job.stats.fragments += 1


def _ring(desk: Desk, proc: Process, tid: int, text: str, at: At, _when: str, whole: bool) -> None:
    if whole:
        desk.registry.ring(proc, tid, text, at)


def _trees(
    desk: Desk, proc: Process, tid: int, text: str, _at: At, _when: str, _whole: bool
) -> None:
    desk.registry.tree(proc, tid, text)


def _collnet(
    desk: Desk, proc: Process, _tid: int, text: str, _at: At, _when: str, whole: bool
) -> None:
    if whole:
        desk.registry.collnet(proc, text)


def _comm(desk: Desk, proc: Process, tid: int, text: str, at: At, when: str, _whole: bool) -> None:
    proc.seen.add("INIT")
    life = Life.of(text)
    if life is not None:
        if desk.registry.claims_other_rank(proc, life, at):
            proc = desk.other_process(proc, at)
        proc.files.add(at[0])
        desk.registry.adopt(proc, tid, life, at)
        desk.registry.life(proc, tid, life, at, wrappers.time_s(when) if when else None)
        return
    match = PLACED.fullmatch(text)
    if match is not None:
        desk.registry.placed(proc, tid, match, at)


def _init(desk: Desk, proc: Process, tid: int, text: str, _at: At, _when: str, whole: bool) -> None:
    match = _INIT.fullmatch(text) if whole else None
    spoken = desk.registry.speaker(proc, tid)
    if match is not None and spoken is not None and spoken[0].nranks == int(match[2]):
        spoken[1].init_s, spoken[1].init_shares = float(match[3]), match[4]


def _using(
    _desk: Desk, proc: Process, _tid: int, text: str, at: At, _when: str, whole: bool
) -> None:
    if whole and text.startswith("Using network "):
        proc.network, proc.network_at = text[14:].strip(), at
        proc.seen.add("INIT")


def _bootstrap(
    _desk: Desk, proc: Process, _tid: int, text: str, at: At, _when: str, _whole: bool
) -> None:
    match = _OOB.match(text)
    if match is not None:
        proc.oob, proc.oob_at = (match[1], match[2]), at
        proc.seen.add("BOOTSTRAP")


def _net_ib(
    _desk: Desk, proc: Process, _tid: int, text: str, at: At, _when: str, whole: bool
) -> None:
    if text.startswith(("NET/IB : No device found", "NET/IB: No device found")):
        proc.no_device = at
        return
    if "GPU Direct RDMA" in text:
        match = _GDR_HCA.match(text)
        if match is not None:
            proc.gdr_hca[match[2]] = (match[1] == "Enabled", at)
            proc.seen.add("NET")
        return
    match = _USING.fullmatch(text) if whole else None
    if match is not None and not _NIC.sub("", match[1]).strip():
        proc.nics, proc.nics_at = nics_of(match[1]), at
        if proc.oob is None and match[2]:
            proc.oob, proc.oob_at = (match[2], match[3]), at


def _ofi(_desk: Desk, proc: Process, _tid: int, text: str, at: At, _when: str, whole: bool) -> None:
    match = _PROVIDER.match(text) if whole else None
    if match is not None:
        proc.provider, proc.provider_at = match[1], at
        proc.ofi_nics = int(match[2]) if match[2] else None


def nics_of(text: str) -> tuple[Nic, ...]:
    """The devices of a list ``[0]mlx5_0:1/RoCE [1]={[0] mlx5_1:1/RoCE, [1] mlx5_2:1/RoCE}``."""
    found = []
    for entry in _NIC.finditer(text):
        if entry[2]:
            found.append(Nic(int(entry[1]), entry[2], int(entry[3]), entry[4]))
            continue
        ports = _PORT.findall(entry[5])
        if ports:
            names = "+".join(port[0] for port in ports)
            found.append(Nic(int(entry[1]), names, int(ports[0][1]), ports[0][2]))
    return tuple(found)


def _driver(
    _desk: Desk, proc: Process, _tid: int, text: str, _at: At, _when: str, whole: bool
) -> None:
    value = text.partition(" ")[2]
    if whole and re.fullmatch(r"\d{4,6}", value):
        proc.driver = int(value)


def _version(
    desk: Desk, proc: Process, _tid: int, text: str, _at: At, _when: str, _whole: bool
) -> None:
    match = BANNER.match(text)
    if match is not None:
        proc.version = (int(match[1]), int(match[2]), int(match[3]))
        proc.cuda_built = (int(match[5]), int(match[6]))
        banner(desk.job, match)


def banner(job: Job, match: re.Match[str]) -> None:
    """A version banner, with or without a head."""
    name = match[0].removeprefix("NCCL version ")
    if name in job.banners or len(job.banners) < SAMPLES_MOST:
        job.banners[name] += 1


def _connected(
    desk: Desk, proc: Process, tid: int, text: str, at: At, _when: str, _whole: bool
) -> None:
    proc.went_on = at
    rings = text.startswith("Connected all rings")
    spoken = desk.registry.speaker(proc, tid)
    if rings and spoken is not None and " GDR " in text:
        spoken[1].ring_gdr = text.rstrip().endswith("GDR 1")
    desk.registry.connected(proc, tid, "rings" if rings else "others")


def _gpu(
    _desk: Desk, proc: Process, _tid: int, text: str, at: At, _when: str, _whole: bool
) -> None:
    match = _GDR.match(text) or _GDR_PATH.match(text)
    if match is not None and len(proc.gdr) < 1024:
        enabled = match[1] == "Enabled"
        proc.gdr[match[2], match[3]] = (enabled, int(match[4]), int(match[5]), at)
        proc.seen.add("NET")


def _nvls(
    _desk: Desk, proc: Process, _tid: int, text: str, at: At, _when: str, _whole: bool
) -> None:
    match = _NVLS.fullmatch(text)
    if match is not None:
        proc.nvls, proc.nvls_at = match[1] is None, at


def _at_info(desk: Desk, proc: Process, _tid: int, text: str, at: At, when: str, _w: bool) -> None:
    """Texts that newer versions demoted to INFO, and those that never were a warning."""
    if "falling back to simple order" in text:
        desk.job.simple_order.setdefault(proc.host, at)
        return
    if "retrying" in text:
        desk.job.retrying += 1
        again = _AGAIN.search(text)
        if again is not None and len(desk.job.refused) < SAMPLES_MOST:
            desk.job.refused[again[1]] = again[2]
        return
    found = errors.classify(text)
    if found is not None and errors.told_at_info(found[0].kind):
        desk.on_error.warn(proc, text, at, when)


def _p2p(_desk: Desk, proc: Process, _tid: int, text: str, at: At, _when: str, _w: bool) -> None:
    if text.startswith("P2P is disabled between connected GPUs"):
        proc.p2p_refused = proc.p2p_refused or at


def by_shape(
    desk: Desk, proc: Process, tid: int, text: str, at: At, when: str, whole: bool
) -> None:
    """Messages that begin with a name or a number instead of a fixed word."""
    if text.startswith("NCCL_"):
        match = _ENV.fullmatch(text) if whole else None
        if match is not None:
            proc.env[match[1]] = _value(match[1], match[2])
            proc.seen.add("ENV")
        return
    if text.startswith(("nccl", "[Rank")):
        _comm(desk, proc, tid, text.rstrip(), at, when, whole)
        return
    match = _CHANNELS.match(text) if "p2p channels per peer" in text else None
    spoken = desk.registry.speaker(proc, tid) if match is not None else None
    if match is not None and spoken is not None:
        spoken[1].channels = int(match[1])


def ladder(proc: Process, tid: int, text: str, at: At) -> None:
    """``transport/net.cc:1298 -> 6``: a step of an error on its way up."""
    match = _LADDER.fullmatch(text)
    if match is None:
        return
    code = int(match[1])
    known = next((each for each in proc.ladders if (each.tid, each.code) == (tid, code)), None)
    if known is not None:
        known.last = text
    elif len(proc.ladders) < LADDERS_PER_PROCESS:
        proc.ladders.append(Ladder(tid, code, text, text, at))


def _value(name: str, text: str) -> str:
    """The value echoed: numbers have a dot behind them, texts have not."""
    if name.removeprefix("NCCL_") in _WORDS:
        return text
    return text[:-1] if re.fullmatch(r"-?\w+\.", text) else text


HANDLERS: Final[dict[str, Handler]] = {
    "Channel": _channel,
    "Ring": _ring,
    "Trees": _trees,
    "CollNet": _collnet,
    "comm": _comm,
    "Init": _init,
    "Using": _using,
    "Bootstrap": _bootstrap,
    "Bootstrap:": _bootstrap,
    "NET/IB": _net_ib,
    "NET/IB:": _net_ib,
    "NET/OFI": _ofi,
    "cudaDriverVersion": _driver,
    "NCCL": _version,
    "Connected": _connected,
    "GPU": _gpu,
    "NVLS": _nvls,
    "P2P": _p2p,
    "Could": _at_info,
    "Call": _at_info,
    "socketStartConnect:": _at_info,  # from 2.24 on
    "socketPollConnect:": _at_info,
    "Failed": _at_info,
    "XML": _at_info,
}
