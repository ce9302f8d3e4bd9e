"""Warnings by kind: what NCCL's texts of all versions mean, with their parts.

Matched on the text alone, so that a paste without heads, or a text that JAX or PyTorch repeats, is
understood too. ``secondary`` ones are what a failure elsewhere makes a process say.
"""

from __future__ import annotations

import re
from typing import Final

from commcheck.lazy import dataclass, regex


@dataclass(frozen=True, slots=True)
class Form:
    """A text that NCCL prints: its kind, a word that must be in it, and the parts to keep."""

    kind: str
    word: str
    pattern: re.Pattern[str]
    secondary: bool = False


def _form(kind: str, word: str, pattern: str = "", *, secondary: bool = False) -> Form:
    return Form(kind, word, regex(pattern or re.escape(word)), secondary)


GPU_REGISTRATION: Final = "gpu-registration"
"""The kind of what NICs say of GPU memory: where only a user's buffer was to be registered, NCCL
goes on without. Sources: NVIDIA/nccl#778, NVIDIA/nccl#1842, Mellanox/nv_peer_memory#115."""

_PEER = r"(?:from peer (?P<peer>\S+) )?"
_GIDS = r"(?:.*?localGid (?P<local>[0-9a-fA-F:.]+) remoteGids? ?(?P<remote>[0-9a-fA-F:.]+))?"
_HCA = r"(?:.*? hca (?P<hca>[\w-]+))?"

_OF_DEVICE = r"(?:NET/IB ?: (?P<dev>(?!Got )[\w-]+(?::\d+)?) )?"

_OF_NVLS: Final = _form("nvls", "Failed to bind NVLink SHARP")

FORMS: Final = (
    _form(
        "completion",
        "Got completion",
        r"Got completion "
        + _PEER
        + r"with (?:error (?P<old>\d{1,9})|status=(?:\w+\()?(?P<status>\d{1,9}))"
        + _GIDS
        + _HCA,
    ),
    _form(
        "async",
        "async",
        _OF_DEVICE + r"(?:Got )?(?:non-fatal )?async (?P<severity>error |fatal )?event[^:]*: ?"
        r"(?P<event>.+)",
    ),
    _form("async", "GID table changed", _OF_DEVICE + r"(?P<event>GID table changed)"),
    _form(
        "modify-qp",
        "ibv_modify_qp failed",
        r"ibv_modify_qp failed with (?:error |errno )?(?:(?P<errno>\d+)(?: [A-Za-z ]+)?|"
        r"(?P<error>[A-Z][A-Za-z]*(?: (?!errno )[A-Za-z]+)*)(?: \[?errno (?P<code>\d+)\]?)?)"
        r"(?:, on dev (?P<dev>[\w-]+)(?::\d+)?)?"
        r"(?:, curr state \w+, next state \w+)?(?:, local GID index (?P<index>\d{1,9}))?"
        r"(?:, local GID (?P<local>[0-9a-fA-F:.]+))?(?:, remote GID (?P<remote>[0-9a-fA-F:.]+))?",
    ),
    _form(
        "verbs-memory",
        "Cannot allocate memory",
        r"(?P<call>ibv_\w+).* failed with .*Cannot allocate memory",
    ),
    _form(
        GPU_REGISTRATION,
        "ibv_reg_",
        r"(?P<call>ibv_reg_(?:dmabuf_)?mr\w*) failed with (?:error )?(?:\d+ )?"
        r"(?:Bad address|Invalid argument|Operation not supported|Bad file descriptor)",
    ),
    _form(
        "open-device", "Unable to open device", r"NET/IB ?: Unable to open device (?P<dev>[\w-]*)"
    ),
    _form(
        "open-device", "Unable to query device", r"Unable to query (?:device|port) ?(?P<dev>[\w-]*)"
    ),
    _form("no-verbs", "Failed to open libibverbs"),
    _form("no-verbs", "dlvsym failed on ibv_"),
    _form("no-interface", "no socket interface found"),
    _form("no-interface", "NET/Socket : no interface found"),
    _form("no-interface", "No IP interface found"),
    _form("no-interface", "address with family", r"address with family \d+"),
    _form("merge", "ttempted to merge incompatible devices"),
    _form("merge", "with different link_layer"),
    _form(
        "connect",
        "exceeded error retry count",
        r"connect to (?P<peer>\S+) returned (?P<why>[^,]+), exceeded error retry count",
    ),
    _form("connect", "onnect to", r"[Cc]onnect to (?P<peer>\S+) failed ?: (?P<why>[A-Z][\w ]+)"),
    _form(
        "rank-count",
        "mismatch in",
        r"Bootstrap Root ?: mismatch in (?:rank count|info) from procs",
    ),
    _form(
        "duplicate-rank",
        "already checked in",
        r"Bootstrap Root ?: rank (?P<rank>\d{1,9}) of \d+ ranks has already checked in",
    ),
    _form(
        "version",
        "Mismatched NCCL version",
        r"Mismatched NCCL version detected : rank (?P<a>\d{1,9}) version (?P<va>\d{1,9}) "
        r"rank (?P<b>\d{1,9}) version (?P<vb>\d{1,9})",
    ),
    _form(
        "closed",
        "Connection closed by remote peer",
        r"Connection closed by remote peer (?P<peer>\S+)",
        secondary=True,
    ),
    _form("truncated", "essage truncated", r"[Mm]essage truncated"),
    _form("truncated", "collective mismatch error"),
    # A time-out is no victim's: the path itself may be gone.
    _form(
        "closed",
        "failed :",
        r"Call to (?:recv|send)\w*(?: (?:from|to) (?P<peer>\S+))? failed ?: "
        r"(?:Connection reset by peer|Broken pipe)",
        secondary=True,
    ),
    _form("accept", "Accept failed", secondary=True),
    _form("accept", "Could not receive type from localRank", secondary=True),
    _form("progress", "Error encountered progressing", secondary=True),
    _form("progress", "Socket recv failed while polling", secondary=True),
    _form("proxy", "Failed to execute operation", secondary=True),
    _form("job", "ncclCommSetAsyncError", secondary=True),
    _form("job", "ncclAsyncJobComplete", secondary=True),
    _form(
        "duplicate-gpu",
        "Duplicate GPU detected",
        r"Duplicate GPU detected : rank (?P<a>\d{1,9}) and rank (?P<b>\d{1,9}) both on CUDA device "
        r"(?P<bus>[0-9a-fA-F:.]+)",
    ),
    _form(
        "shm-size",
        "/dev/shm/nccl-",  # noqa: S108 - a text to find, not a file to write
        r"(?:failed to extend|while creating shared memory segment) /dev/shm/nccl-\w+"
        r"(?: to (?P<bytes>\d{1,9}) bytes|.*size (?P<size>\d{1,9}))?",
    ),
    _form("shm-size", "posix_fallocate failed"),
    _form("shm-attach", "attaching to shared memory segment"),
    _form(
        "p2p-nvlink",
        "between NVLINK connected GPUs",
        r"P2P is disabled between NVLINK connected GPUs (?P<a>\d{1,9}) and (?P<b>\d{1,9})",
    ),
    _form("p2p-enable", "Could not enable P2P between"),
    _form("p2p-enable", "peer query failed between"),
    _OF_NVLS,
    _form("mnnvl", "MNNVL (cliqueSize", r"MNNVL \(cliqueSize \d+\) is available but not \w+"),
    _form(
        "topo-file",
        "XML topology file",
        r"Could not open XML topology file (?P<file>\S+) : (?P<why>.+)",
    ),
    _form("topo-file", "XML Mismatch"),
    _form("topo-file", "falling back to simple order"),
    _form("driver", "not supported in the installed CUDA driver"),
    _form("driver", "driver version is insufficient"),
    _form("gpu-memory", "out of memory", r"Cuda failure (?P<code>\d+ )?'out of memory'"),
    _form("cuda", "Cuda failure", r"Cuda failure (?P<code>\d+ )?'(?P<what>[^']{1,120})'"),
    _form(
        "plugin",
        "Failed to initialize ",
        r"Failed to initialize (?:NET plugin (?P<name>\S+)|any NET plugin)",
    ),
    _form("net-name", "Network plugin", r"Network plugin (?P<name>\S+) not found"),
    _form("net-name", "Error: network", r"Error: network (?P<name>\S+) not found"),
    _form(
        "setting",
        "mismatch enforced",
        r"mismatch enforced: ?(?P<name>NCCL_\w+) ?= ?.*?\(expected [^)]*\)",
    ),
    # On a host without EFA, too: which network is taken then is another rule's.
    _form(
        "ofi-init",
        "NET/OFI ",
        r"NET/OFI (?:Unable to find a protocol|Failed to initialize \w+ protocol"
        r"|aws-ofi-nccl initialization failed|Initializing plugin failed|Finalizing already)",
    ),
    _form("efa-peer", "NET/OFI ", r"NET/OFI .*\((?:Unresponsive receiver|Unreachable remote)"),
    # No rule knows more of these than their text: last, so that any other form goes first.
    _form("call", "Call to ", r"Call to (?P<call>\w+).*? failed"),
    _form("call", "failed : ", r"(?P<call>\w+)\(\) failed : (?P<why>[A-Z][\w ]+)"),
    _form("call", "NET/OFI ", r"NET/OFI .*(?:[Rr]equest .*completed with error|RC: -?[1-9])"),
)

LADDER: Final = "ladder"
"""The kind of an error of which only its way up through NCCL was printed."""

UNKNOWN: Final = _form("unknown", "")
"""Of a warning that has none of the forms."""

UNNAMED: Final = ("call", UNKNOWN.kind, LADDER)
"""Kinds of which nothing more is known than that something failed, or may have."""

GOES_ON: Final = frozenset(
    {"async", "merge", "net-name", "no-verbs", "nvls", "open-device", "p2p-enable", "p2p-nvlink"}
    | {"ofi-init", "plugin", "topo-file"}
)
"""Kinds after which NCCL mostly goes on: what ended the job may stand behind them."""

_BY_INFO: Final = frozenset({"topo-file", "plugin"})
"""Kinds that newer versions print at INFO level."""

HARMLESS: Final = (
    "unsafe; will use",
    "P2P is disabled between connected GPUs",
    "cuMem host allocations do not appear to be working",
    "Missing ",
    "NUMA auto balancing",
    "NET/OFI No eligible providers were found",  # one of two protocols: what is selected counts
    "NET/OFI Could not find ncclGetVersion symbol",
    "NET/OFI pciPath: Could not find real path",
    "NET/OFI Error opening file: /sys/devices/virtual/dmi/",
)
"""Warnings that are judged elsewhere, or not at all: healthy jobs print them, too."""


_STICKY: Final = regex(r"illegal|misaligned|launch failure|ECC|device-side assert")
"""An earlier failure of the GPU or the program, which any later CUDA call repeats."""


def classify(text: str, file: str = "") -> tuple[Form, dict[str, str]] | None:
    """The kind of a warning and its parts, or None where nothing is known of it.

    ``file``: of NCCL's source, where the head names it.
    """
    for form in FORMS:
        if form.word in text:
            match = form.pattern.search(text[:2000])
            if match:
                values = {k: v.strip() for k, v in match.groupdict().items() if v}
                of_cuda = form.kind in ("cuda", "gpu-memory")
                if of_cuda and "/nvls." in file and not _STICKY.search(text):
                    form = _OF_NVLS
                return form, values
    return None


def told_at_info(kind: str) -> bool:
    """True for kinds that count although the line's level is INFO."""
    return kind in _BY_INFO


# 2.23 to 2.27 print subnet manager news as "async error event": harmless alone.
_NEWS: Final = regex(
    r"port active|client reregister|SM change|LID change|PKey change|GID table change",
    re.IGNORECASE,
)
_FATAL: Final = regex(r"catastrophic|CQ error|QP |SRQ|fatal", re.IGNORECASE)


def event_class(values: dict[str, str] | object) -> str:
    """``fatal``, ``port`` (a flap) or ``news`` for an asynchronous event."""
    event = values.get("event", "") if isinstance(values, dict) else ""
    if _NEWS.search(event):
        return "news"
    severity = values.get("severity", "") if isinstance(values, dict) else ""
    if severity.startswith("fatal") or _FATAL.search(event):
        return "fatal"
    return "port" if "port err" in event.lower() else "news"
