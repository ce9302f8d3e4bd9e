"""Rules on what a rank finds around it: files it names, memory it may lock, its RAS port.

ENV-040 to 042, ENV-063, ENV-064, ENV-066, RAS-010.
"""

from __future__ import annotations

from typing import Final

from commcheck.lazy import regex
from commcheck.nccl.environment import causes
from commcheck.nccl.environment.causes_given import NO_RDMA_DEVICE
from commcheck.nccl.environment.model import CONF, SHM_DEFAULT, Environment, HostFacts
from commcheck.nccl.environment.rule import UNSET, EnvRule, each, fail, warn
from commcheck.nccl.job_files import FILES, NamedFile
from commcheck.nccl.ruling import Found, Ruling, other, right, unknown, wrong

ASK: Final = "ask the host while the job runs there: commcheck run"

_KINDS: Final = {"NCCL_TOPO_FILE": ("system", "1"), "NCCL_GRAPH_FILE": ("graphs", "1")}
"""Element and version of the XML that NCCL takes (NCCL src/graph/xml.h)."""


def _named(one: Environment, host: HostFacts, variable: str) -> tuple[NamedFile, ...]:
    """The file that a variable names, as every rank on the host sees it."""
    path = one.get(variable)
    return tuple(
        file for file in host.files or () if file.variable == variable and file.path == path
    )


def _files(one: Environment, host: HostFacts) -> Ruling:
    given = [name for name in FILES if one.get(name) is not None]
    if not given:
        return other(UNSET)
    found: list[Found] = []
    unread = ""
    for name in given:
        shown = one.show(name)
        files = _named(one, host, name)
        if (one.get(name) or "").startswith("~"):
            found.append(
                fail(causes.TOPOLOGY_FILE, f"{shown}: '~' is not expanded, no file is read")
            )
        elif any(file.state == "absent" for file in files):
            found.append(fail(causes.TOPOLOGY_FILE, f"{shown}: the rank sees no such file"))
        elif wrong_kind := next((_odd(file) for file in files if _odd(file)), ""):
            found.append(fail(causes.TOPOLOGY_FILE, f"{shown} {wrong_kind}"))
        elif not files or any(file.state != "read" for file in files):
            unread = unread or shown
    if unread and not found:
        return unknown(f"{unread}: whether the job's container has the file is not known", ASK)
    return wrong(*found)


def _odd(file: NamedFile) -> str:
    """Why NCCL takes nothing from a file that is there, or ""."""
    wanted = _KINDS.get(file.variable)
    if wanted is None or file.state != "read":
        return ""
    kind, version = wanted
    if file.kind != kind:
        return f"holds {f'<{file.kind}>' if file.kind else 'no XML of NCCL'}, want <{kind}>"
    if file.version != version:
        return f"has version {file.version or 'none'}, want {version}"
    return "" if file.whole else "ends before its end: it was cut"


def _devices(one: Environment, host: HostFacts) -> Ruling:
    if one.get("NCCL_TOPO_FILE") is None:
        return other(UNSET)
    shown = one.show("NCCL_TOPO_FILE")
    files = [file for file in _named(one, host, "NCCL_TOPO_FILE") if file.kind == "system"]
    if not files or host.pci is None:
        return unknown(f"{shown}: the PCI addresses in it, or those of the host, are not known",
                       ASK)  # fmt: skip
    buses = {bus for file in files for bus in file.buses}
    gone = sorted(bus for bus in buses if not host.pci.has(bus))
    if not gone:
        return right(f"{shown}: all {len(buses)} PCI addresses in it are on the host")
    reason = (
        f"{shown} names {len(gone)} of {len(buses)} PCI addresses that the host does not have "
        f"({', '.join(gone[:3])}): it is another machine's"
    )
    return wrong(fail(causes.TOPOLOGY_FILE, reason, strange_addresses=gone[:20]))


def _guessed(one: Environment, host: HostFacts) -> Ruling:
    """In a machine whose PCI tree is made up, NCCL pairs GPUs and NICs by guess."""
    if one.get("NCCL_TOPO_FILE") is not None:
        return right()
    if not one.is_unset("NCCL_TOPO_FILE") and one.kind != CONF:
        return unknown("only a part of the environment is known", "give /proc/PID/environ")
    if host.virtual is None:
        return unknown("whether the host is a virtual machine is not known", ASK)
    if not host.virtual:
        return right()
    if host.virtual_topology:
        return right("the machine's image has a topology file that NCCL finds by itself")
    if host.flat is None:
        return unknown("the PCI tree of the host is not known", ASK)
    if not host.flat:
        return right()
    reason = (
        "a virtual machine whose GPUs and NICs all hang on the root, without NCCL_TOPO_FILE: "
        "NCCL guesses which NIC is near which GPU"
    )
    return wrong(warn(causes.TOPOLOGY_FILE, reason))


def _rdma_device(one: Environment, host: HostFacts) -> Ruling:
    """NCCL_IB_* in a container that is given no device for it."""
    if not one.lacks_rdma or host.rdma is False or host.network:
        return other("no pod without a device for RDMA")
    if one.int("NCCL_IB_DISABLE") or (one.get("NCCL_NET") or "IB").upper() != "IB":
        return other("the job does not want RDMA")
    wants = sorted(name for name in one.settings if name.startswith("NCCL_IB_") and one.get(name))
    wants = [name for name in wants if name != "NCCL_IB_DISABLE"]
    if not wants:
        return right()
    reason = (
        f"{one.show(wants[0])}, and nothing in the pod asks for an RDMA device: between hosts NCCL "
        "takes TCP"
    )
    return wrong(warn(NO_RDMA_DEVICE, reason))


# --- memory -------------------------------------------------------------------------------------

_GIB: Final = 1 << 30


def _locked(one: Environment, host: HostFacts) -> Ruling:
    if host.rdma is False:
        return other("the host has no RDMA NICs")
    if one.kind != "process":
        return unknown("what the ranks may lock is not known", ASK)
    if host.locked_bytes is None:
        return unknown("what the ranks may lock could not be read", "allow sudo -n, then ask again")
    if host.locked_bytes < 0:
        return right("the ranks may lock memory without limit")
    # Below this the first large buffer fails; above it some do, later.
    say = fail if host.locked_bytes < _GIB and one.spans_hosts else warn
    reason = (
        f"a rank may lock {host.locked_bytes} bytes and has no CAP_IPC_LOCK, want no limit: "
        "buffers cannot be registered with the NICs"
    )
    return wrong(say(causes.MEMLOCK, reason, locked_bytes=host.locked_bytes))


def _shm(one: Environment, host: HostFacts) -> Ruling:
    where = one.who[0] if one.who else "the container"
    if one.kind == "process" and host.shm_bytes is not None:
        if host.shm_bytes >= _GIB or (one.int("LOCAL_WORLD_SIZE") or 2) < 2:
            return right()
        size = f"{host.shm_bytes >> 20} MiB"
        reason = f"the container's /dev/shm has {size}, want 1 GiB or more"
        return wrong(warn(causes.SHARED_MEMORY, reason, shm_bytes=host.shm_bytes))
    if one.shm_bytes is None:
        return unknown("the size of /dev/shm is not known", "give the pod's YAML")
    if not 0 <= one.shm_bytes < _GIB or one.gpus == 1:
        return right()
    default = "the default /dev/shm of 64 MiB" if one.shm_bytes == SHM_DEFAULT else ""
    size = default or f"a /dev/shm of {one.shm_bytes >> 20} MiB"
    reason = f"{where} has {size}, want 1 GiB or more"
    return wrong(warn(causes.SHARED_MEMORY, reason, shm_bytes=one.shm_bytes))


# --- RAS ----------------------------------------------------------------------------------------

_LOOPBACK: Final = regex(r"localhost|127(?:\.\d{1,3}){1,3}|\[?::1\]?|")


def _ras(one: Environment, _host: HostFacts) -> Ruling:
    address = one.get("NCCL_RAS_ADDR")
    if one.get("NCCL_RAS_ENABLE") == "0":
        return other("RAS is off")
    if address is None:
        if not one.is_unset("NCCL_RAS_ADDR"):
            return unknown("only a part of the environment is known", "give /proc/PID/environ")
        return right("RAS listens on localhost")
    if _LOOPBACK.fullmatch(address.rpartition(":")[0]):
        return right()
    reason = f"{one.show('NCCL_RAS_ADDR')}: whoever reaches it may change the running job"
    return wrong(warn(causes.RAS_OPEN, reason))


RULES: Final[tuple[EnvRule, ...]] = (
    each("ENV-066", "containers have devices for RDMA", _rdma_device),
    each("ENV-040", "the files it names are there", _files),
    each("ENV-041", "the topology file is of this machine", _devices),
    each("ENV-042", "no topology by guess", _guessed),
    each("ENV-063", "memory can be locked", _locked),
    each("ENV-064", "containers have shared memory", _shm),
    each("RAS-010", "RAS listens to this host only", _ras),
)
