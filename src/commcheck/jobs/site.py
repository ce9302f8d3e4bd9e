"""What the inventory may say of how jobs are launched: launcher, programs, networks, expectations.

Everything has a default that works where MPI and the benchmark are on PATH; nothing here is ever
pasted into a shell.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from commcheck.check import Key, expects
from commcheck.expect import GID_INDEX, LEAF, LINE_RATE_GBITS, ROCE_DSCP, one_of
from commcheck.kube import mpijob
from commcheck.lazy import dataclass, regex
from commcheck.model import Wanted
from commcheck.report.cleaning import SEEN_BY_ALL, holds_secret

_WORD: Final = regex(r"[A-Za-z0-9_.:,/@%+=^*-]{1,256}")
_ENV_NAME: Final = regex(r"[A-Za-z_][A-Za-z0-9_]{0,63}")
_ENV_VALUE: Final = regex(r"[\x20-\x7e]{0,512}")
_FOLDER: Final = regex(r"/[A-Za-z0-9_./+-]{1,200}")
_ADDRESS: Final = regex(r"[A-Za-z0-9][A-Za-z0-9_.-]{0,253}|[0-9a-fA-F:]{2,45}")
_INTERFACE: Final = regex(r"[A-Za-z0-9_.,/:-]{1,64}")

SHAPES: Final = ("node", "pairs", "rails", "fleet")


def read_folder(value: object) -> str:
    """A folder as an absolute path."""
    if isinstance(value, str) and _FOLDER.fullmatch(value) and ".." not in value:
        return value.rstrip("/")
    raise ValueError(f"wanted an absolute path, not {value!r}")


def read_address(value: object) -> str:
    """A host name or an IP address."""
    if isinstance(value, str) and _ADDRESS.fullmatch(value):
        return value
    raise ValueError(f"wanted a host name or an address, not {value!r}")


def read_interface(value: object) -> str:
    """Network interfaces by name, or networks: ``eth0``, ``10.10.0.0/24``."""
    if isinstance(value, str) and _INTERFACE.fullmatch(value) and not value.startswith("-"):
        return value
    raise ValueError(f"wanted an interface like eth0 or a network like 10.1.0.0/16, not {value!r}")


def read_words(value: object) -> tuple[str, ...]:
    """Words for the launcher's command line."""
    words = value.split() if isinstance(value, str) else value
    if not isinstance(words, list | tuple):
        raise ValueError(f"wanted a list of words, not {value!r}")
    for word in words:
        if not isinstance(word, str) or not all(map(_WORD.fullmatch, word.split(" "))):
            raise ValueError(f"wanted plain words, not {word!r}")
    if holds_secret(" ".join(words)):
        raise ValueError(SEEN_BY_ALL)
    return tuple(words)


def read_env(value: object) -> tuple[tuple[str, str], ...]:
    """Environment variables by name."""
    if not isinstance(value, Mapping):
        raise ValueError(f"wanted variables by name, not {value!r}")
    found = []
    for name, given in value.items():
        text = str(given).lower() if isinstance(given, bool) else str(given)
        if not isinstance(name, str) or not _ENV_NAME.fullmatch(name):
            raise ValueError(f"wanted the name of a variable, not {name!r}")
        if not _ENV_VALUE.fullmatch(text):
            raise ValueError(f"{name}: wanted printable text of 512 characters at most")
        if holds_secret({name: text}):
            raise ValueError(f"{name}: {SEEN_BY_ALL}")
        found.append((name, text))
    return tuple(found)


def read_busbw(value: object) -> tuple[tuple[str, float], ...]:
    """busbw in GB/s by the shape of the run."""
    if not isinstance(value, Mapping) or not value:
        raise ValueError(f"wanted GB/s by {', '.join(SHAPES)}, not {value!r}")
    found = []
    for shape, gbytes in value.items():
        if shape not in SHAPES:
            raise ValueError(f"wanted one of {', '.join(SHAPES)}, not {shape!r}")
        if isinstance(gbytes, bool) or not isinstance(gbytes, int | float) or gbytes <= 0:
            raise ValueError(f"{shape}: wanted a busbw in GB/s, not {gbytes!r}")
        found.append((shape, float(gbytes)))
    return tuple(found)


LAUNCHER: Final = Key(
    name="commcheck_launcher",
    read=one_of("auto", "mpirun", "srun", "kubectl", "mpijob"),
    defaults={"": "auto"},
    source="mpirun where it is there, else srun",
    meaning="what starts processes on several hosts; kubectl: mpirun that reaches pods by kubectl "
    "exec; mpijob: an MPIJob on the nodes of Kubernetes",
)
HEAD: Final[Key[str | None]] = Key(
    name="commcheck_launch_host",
    read=read_address,
    meaning="host of the inventory from which runs are launched; undeclared: their first host",
)
ADDRESS: Final[Key[str | None]] = Key(
    name="commcheck_mpi_address",
    read=read_address,
    meaning="name or address by which other hosts reach this one; undeclared: ansible_host",
)
INTERFACE: Final[Key[str | None]] = Key(
    name="commcheck_mpi_interface",
    read=read_interface,
    meaning="management interface or network for MPI and for NCCL's bootstrap",
)
LAUNCH_ARGS: Final[Key[tuple[str, ...]]] = Key(
    name="commcheck_launch_args",
    read=read_words,
    defaults={"": ()},
    source="no further words",
    meaning="more words for mpirun or srun",
)
JOB_ENV: Final[Key[tuple[tuple[str, str], ...]]] = Key(
    name="commcheck_job_env",
    read=read_env,
    defaults={"": ()},
    source="none but what the host's login has",
    meaning="environment of launched runs, as that of the training jobs",
)
PROGRAMS: Final[Key[str | None]] = Key(
    name="commcheck_benchmarks",
    read=read_folder,
    meaning="folder of nccl-tests, hccl_test or perftest; undeclared: PATH and the usual places",
)
MPIJOB: Final[Key[mpijob.Settings | None]] = Key(
    name="commcheck_mpijob",
    read=mpijob.read_settings,
    meaning="image, namespace, resources, labels, host_network, worker and launcher of MPIJobs",
)
BUSBW: Final[Key[tuple[tuple[str, float], ...] | None]] = Key(
    name="commcheck_expected_busbw",
    read=read_busbw,
    unit="GB/s",
    meaning="busbw of healthy hosts by shape of the run: node, pairs, rails, fleet",
)


@dataclass(frozen=True, slots=True)
class Site:
    """What the inventory says of a host that takes part in runs."""

    nic_gbits: Wanted[int | None] = expects(LINE_RATE_GBITS)
    launcher: Wanted[str] = expects(LAUNCHER)
    head: Wanted[str | None] = expects(HEAD)
    address: Wanted[str | None] = expects(ADDRESS)
    interface: Wanted[str | None] = expects(INTERFACE)
    args: Wanted[tuple[str, ...]] = expects(LAUNCH_ARGS)
    env: Wanted[tuple[tuple[str, str], ...]] = expects(JOB_ENV)
    programs: Wanted[str | None] = expects(PROGRAMS)
    mpijob: Wanted[mpijob.Settings | None] = expects(MPIJOB)
    busbw: Wanted[tuple[tuple[str, float], ...] | None] = expects(BUSBW)
    leaf: Wanted[tuple[tuple[str, str], ...] | None] = expects(LEAF)
    gid_index: Wanted[int | None] = expects(GID_INDEX)
    dscp: Wanted[int] = expects(ROCE_DSCP)

    def reference(self, shape: str) -> float | None:
        """The busbw in GB/s that is declared for a shape of run."""
        return dict(self.busbw.value or ()).get(shape)

    @property
    def leaf_name(self) -> str:
        """The one leaf switch of the host; "" where it has several, or none is declared."""
        names = {switch for _, switch in self.leaf.value or ()}
        return names.pop() if len(names) == 1 else ""
