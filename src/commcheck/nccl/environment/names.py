"""Names of variables: which leave a host at all, which NCCL knows, and since which release.

``params.tsv`` lists NCCL's own parameters with first and last release and every change of their
default (NCCL 2.7.3 to 2.32.3, src and the user guide, tag by tag). Proof that none is lacking are
the names in libnccl.so itself, as in NVIDIA's wheels: ``strings libnccl.so.2 | grep ^NCCL_``.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from functools import cache
from importlib.resources import files
from typing import Final

from commcheck.lazy import dataclass, regex

Version = tuple[int, int, int]

PREFIXES: Final = (
    "NCCL_",
    "TORCH_NCCL_",
    "TORCH_FR_",
    "HCCL_",
    "ASCEND_",
    "UCX_",
    "GLOO_",
    "FI_",
    "OFI_NCCL_",
    "SHARP_COLL_",
    "NVSHMEM_",
)
"""Beginnings of the names that are looked at."""

WHOLE: Final = (
    "CUDA_DEVICE_MAX_CONNECTIONS",
    "CUDA_LAUNCH_BLOCKING",
    "CUDA_VISIBLE_DEVICES",
    "NVIDIA_VISIBLE_DEVICES",
    "OMP_NUM_THREADS",
    "MASTER_ADDR",
    "MASTER_PORT",
    "WORLD_SIZE",
    "LOCAL_WORLD_SIZE",
    "RANK",
    "LOCAL_RANK",
    "TORCH_DISTRIBUTED_DEBUG",
    "PYTORCH_CUDA_ALLOC_CONF",
    "LD_LIBRARY_PATH",
    "LD_PRELOAD",
    "RAY_DEDUP_LOGS",
)
"""Whole names that are looked at. Everything else stays where it is: it may be a secret."""

_ASSIGNABLE: Final = regex(r"[A-Za-z_][A-Za-z0-9_]{0,127}")
_SECRET: Final = regex(r"TOKEN|PASS|SECRET|CREDENTIAL|API_?KEY|PRIVATE", re.IGNORECASE)


def is_kept(name: str) -> bool:
    """True for a name that may be looked at and shown."""
    wanted = name in WHOLE or name.startswith(PREFIXES)
    return wanted and _ASSIGNABLE.fullmatch(name) is not None and _SECRET.search(name) is None


@dataclass(frozen=True, slots=True)
class Param:
    """One parameter of NCCL. ``last``: None while it exists. ``defaults``: from which release."""

    name: str
    first: Version
    last: Version | None
    defaults: tuple[tuple[Version, str], ...]

    @property
    def is_integer(self) -> bool:
        """True where NCCL reads a number; in doubt False."""
        return self.defaults[-1][1] != "unset" and self.name not in _TEXT


_TEXT: Final = frozenset(
    {
        "NCCL_COLLNET_ENABLE",
        "NCCL_DEBUG_SUBSYS",
        "NCCL_DEBUG_TIMESTAMP_FORMAT",
        "NCCL_DEBUG_TIMESTAMP_LEVELS",
    }
)
"""Texts although they have a default that is no "unset"."""


def version_of(text: str) -> Version | None:
    """``2.21.5``, ``2.21.5+cuda12.4`` or ``2.32`` as numbers."""
    match = re.match(r"(\d{1,3})\.(\d{1,3})(?:\.(\d{1,3}))?", text)
    return (int(match[1]), int(match[2]), int(match[3] or 0)) if match else None


def shown(version: Version) -> str:
    """``2.21.5``."""
    return ".".join(map(str, version))


@cache
def params() -> Mapping[str, Param]:
    """NCCL's parameters by name."""
    text = files("commcheck.nccl.environment").joinpath("params.tsv").read_text("utf-8")
    return {param.name: param for line in text.splitlines()[1:] for param in [_param(line)]}


def _param(line: str) -> Param:
    name, first, last, defaults = line.split("\t")
    changes = (each.partition("=") for each in defaults.split("; "))
    return Param(
        name,
        version_of(first) or (0, 0, 0),
        version_of(last),
        tuple((version_of(tag) or (0, 0, 0), value) for tag, _, value in changes),
    )


@cache
def newest() -> Version:
    """The newest release of which something is known."""
    known = params().values()
    return max((each.first for each in known), default=(0, 0, 0))


def default_of(name: str, version: Version) -> str | None:
    """The default of a parameter in a release; None where it did not exist."""
    param = params().get(name)
    if param is None or version < param.first:
        return None
    return next((value for tag, value in reversed(param.defaults) if tag <= version), None)


DEAD: Final[Mapping[str, str]] = {
    "NCCL_IB_GDR_LEVEL": "NCCL_NET_GDR_LEVEL since 2.4",
    "NCCL_IB_CUDA_SUPPORT": "NCCL_NET_GDR_LEVEL since 2.4",
    "NCCL_LL_THRESHOLD": "gone since 2.5",
    "NCCL_TREE_THRESHOLD": "gone since 2.5",
    "NCCL_SINGLE_RING_THRESHOLD": "gone since 2.3",
    "NCCL_RINGS": "gone since 2.5: NCCL_GRAPH_FILE",
    "NCCL_CHECKS_DISABLE": "gone since 2.3: NCCL_CHECK_POINTERS",
    "NCCL_NET_SHARED_BUFFS": "NCCL_NET_SHARED_BUFFERS",
}
"""Names of long ago, and what became of them (NCCL release notes)."""

TORCH_OLD: Final[Mapping[str, str]] = {
    "NCCL_ASYNC_ERROR_HANDLING": "TORCH_NCCL_ASYNC_ERROR_HANDLING",
    "NCCL_BLOCKING_WAIT": "TORCH_NCCL_BLOCKING_WAIT",
    "NCCL_DESYNC_DEBUG": "TORCH_NCCL_DESYNC_DEBUG",
    "NCCL_ENABLE_TIMING": "TORCH_NCCL_ENABLE_TIMING",
}
"""Variables of PyTorch that were renamed in its release 2.2."""

GOOGLE: Final = ("NCCL_FASTRAK_", "NCCL_GPUDIRECTTCPX_")
"""Beginnings that only the plugins of Google's A3 and A3 Mega read: TCPX, and TCPXO (FasTrak)."""

_FOREIGN: Final = (
    *GOOGLE,
    "NCCL_GPUVIZ_",
    "NCCL_MIN_ZCOPY_SIZE",
    "NCCL_NET_PLUGIN_TELEMETRY_",
    "NCCL_USE_SNAP",
    "NCCL_DYNAMIC_CHUNK_SIZE",
    "NCCL_SHIMNET_",
    "NCCL_TUNER_",
    "NCCL_SHARP_",
    "NCCL_PLUGIN_",
    "NCCL_UCX_",
    "NCCL_IBEXT_",
    "NCCL_INSPECTOR_",
    "NCCL_PROFILE",
    "NCCL_MSCCL",
    "NCCL_MESH_",
    "NCCL_TESTS_",
    "NCCL_HOME",
    "NCCL_ROOT",
    "NCCL_LIB",
    "NCCL_INCLUDE",
    "NCCL_VERSION",
)
"""Beginnings with ``NCCL_`` that belong to plugins, builds and images, not to NCCL."""


def is_foreign(name: str, more: Iterable[str] = ()) -> bool:
    """True for a name that NCCL does not own. ``more``: beginnings that the site knows."""
    return name in TORCH_OLD or name.startswith((*_FOREIGN, *more))


def nearest(name: str, known: Iterable[str]) -> str | None:
    """The known name that is at most two letters away, or None."""
    best, found = 3, None
    for each in known:
        if abs(len(each) - len(name)) < best:
            distance = _distance(name, each, best)
            if distance < best:
                best, found = distance, each
    return found


def _distance(a: str, b: str, enough: int) -> int:
    """Letters to insert, delete, change or swap; ``enough`` or more is not looked at closely."""
    before: list[int] = []
    row = list(range(len(b) + 1))
    for i, x in enumerate(a, 1):
        older, before, row = before, row, [i]
        for j, y in enumerate(b, 1):
            cost = min(before[j] + 1, row[j - 1] + 1, before[j - 1] + (x != y))
            if i > 1 and j > 1 and x == b[j - 2] and a[i - 2] == y:
                cost = min(cost, older[j - 2] + 1)
            row.append(cost)
        if min(row) >= enough:
            return enough
    return row[-1]
