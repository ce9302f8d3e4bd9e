"""Rules on ways inside a host, on tuning, logging and PyTorch: the rest of ENV-030 to ENV-062."""

from __future__ import annotations

from typing import Final

from commcheck.nccl.environment import causes
from commcheck.nccl.environment.model import Environment, HostFacts
from commcheck.nccl.environment.names import GOOGLE
from commcheck.nccl.environment.rule import UNSET, EnvRule, each, fail, warn
from commcheck.nccl.environment.rules_network import HOST, INVENTORY
from commcheck.nccl.environment.values import CHATTY, LEVELS, is_path_level, subsystems
from commcheck.nccl.ruling import Found, Ruling, other, right, unknown, wrong

_LEVELS: Final = ("NCCL_NET_GDR_LEVEL", "NCCL_P2P_LEVEL")


def _level_words(one: Environment, _host: HostFacts) -> Ruling:
    return wrong(
        *(
            fail(causes.PATH_LEVEL, f"{one.show(name)} is ignored, want LOC NVL PIX PXB PHB or SYS")
            for name in _LEVELS
            if (value := one.get(name)) is not None and not is_path_level(value)
        )
    )


def _far(one: Environment, host: HostFacts) -> Ruling:
    if one.get("NCCL_NET_GDR_LEVEL") != "SYS":
        return right()
    shown = one.show("NCCL_NET_GDR_LEVEL")
    told = one.get("NCCL_TOPO_FILE") is not None or host.virtual_topology
    if host.virtual and host.flat and not told:
        # Every NIC looks far from every GPU there: unset, NCCL copies through host memory.
        return right(f"{shown}: the bus of this guest does not tell how far GPU and NIC are apart")
    reason = f"{shown} forces GPU Direct across CPUs, want PXB or PHB"
    return wrong(warn(causes.GDR_OFF, reason))


def _no_p2p(one: Environment) -> str:
    if one.get("NCCL_P2P_DISABLE") == "1":
        return one.show("NCCL_P2P_DISABLE")
    return one.show("NCCL_P2P_LEVEL") if one.get("NCCL_P2P_LEVEL") in ("LOC", "0") else ""


def _nvlink(one: Environment, host: HostFacts) -> Ruling:
    off = _no_p2p(one)
    if not off:
        return right()
    if host.nvlink is None:
        return unknown(f"{off}: whether the GPUs have NVLink is not known", INVENTORY)
    if not host.nvlink:
        return right(f"{off}, and there is no NVLink")
    return wrong(fail(causes.LOCAL_PATH, f"{off}: NVLink is not used, want it unset"))


def _shared(one: Environment, _host: HostFacts) -> Ruling:
    if not one.int("NCCL_SHM_DISABLE"):
        return right()
    say = fail if _no_p2p(one) else warn
    reason = f"{one.show('NCCL_SHM_DISABLE')} sends traffic of one host through its NIC"
    return wrong(say(causes.LOCAL_PATH, reason))


def _hidden(one: Environment, _host: HostFacts) -> Ruling:
    if not one.int("NCCL_IGNORE_DISABLED_P2P"):
        return right()
    reason = f"{one.show('NCCL_IGNORE_DISABLED_P2P')} hides that GPUs cannot reach each other"
    return wrong(warn(causes.LOCAL_PATH, reason))


# --- tuning -------------------------------------------------------------------------------------


def _by_profile(one: Environment) -> bool:
    """Whether the job runs over TCPX or TCPXO, which do not work with all that NCCL may choose.

    Google's nccl-env-profile.sh sets algorithms, protocols and NVLS: TCPX knows Ring and Simple
    only, and TCPXO's checker ends a job that differs (cloud.google.com/kubernetes-engine/docs,
    "Maximize GPU network bandwidth").
    """
    return any(name.startswith(GOOGLE) for name in one.settings)


_PROFILE: Final = "as the profile of Google's plugin sets it"


def _algorithm(one: Environment, _host: HostFacts) -> Ruling:
    given = [name for name in ("NCCL_ALGO", "NCCL_PROTO") if one.get(name) is not None]
    if given and _by_profile(one):
        return right(f"{one.show(given[0])}: {_PROFILE}")
    return wrong(
        *(
            warn(causes.TUNING, f"{one.show(name)} takes the choice from NCCL, want it unset")
            for name in given
        )
    )


_MOST: Final = ("NCCL_MAX_NCHANNELS", "NCCL_MAX_CTAS")


def _channels(one: Environment, host: HostFacts) -> Ruling:
    limits = {name: value for name in _MOST if (value := one.int(name)) is not None and value > 0}
    if not limits:
        return right()
    name, most = min(limits.items(), key=lambda each: each[1])
    nics = None if host.rails is None else len(host.rails)
    if nics is None and most > 1:
        return unknown(f"{one.show(name)}: the number of NICs is not known", INVENTORY)
    least = 2 * (nics or 1)
    if most >= least:
        return right()
    reason = f"{one.show(name)} cannot fill the NICs, want {least} or more"
    return wrong(warn(causes.TUNING, reason))


def _both_limits(one: Environment, _host: HostFacts) -> Ruling:
    if all(one.get(name) for name in _MOST):
        return right("NCHANNELS and CTAS are both limited: the stricter one wins")
    return right()


def _nvls(one: Environment, host: HostFacts) -> Ruling:
    if one.int("NCCL_NVLS_ENABLE") != 0:
        return right()
    shown = one.show("NCCL_NVLS_ENABLE")
    if _by_profile(one):
        return right(f"{shown}: {_PROFILE}")
    if host.hopper is None:
        return unknown(f"{shown}: whether the NVSwitches reduce is not known", HOST)
    if not host.hopper:
        return right()
    return wrong(warn(causes.TUNING, f"{shown} slows all-reduce inside the host, want it unset"))


def _cumem(one: Environment, _host: HostFacts) -> Ruling:
    if one.int("NCCL_CUMEM_ENABLE") == 0:
        return right(f"{one.show('NCCL_CUMEM_ENABLE')}: no buffer registration for NVLS")
    return right()


def _cross(one: Environment, host: HostFacts) -> Ruling:
    if one.int("NCCL_CROSS_NIC") != 1:
        return right()
    shown = one.show("NCCL_CROSS_NIC")
    return _of_rails(host, shown, fail(causes.RAIL_ONLY, f"{shown} on a rail-only fabric"))


def _no_pxn(one: Environment, host: HostFacts) -> Ruling:
    if not one.int("NCCL_PXN_DISABLE"):
        return right()
    shown = one.show("NCCL_PXN_DISABLE")
    return _of_rails(host, shown, warn(causes.RAIL_ONLY, f"{shown}: all-to-all leaves its rail"))


def _of_rails(host: HostFacts, shown: str, found: Found) -> Ruling:
    """What is wrong only where rails do not reach each other."""
    if host.rail_only is None:
        return unknown(
            f"{shown}: whether the fabric is rail-only is not known", "declare commcheck_rail_only"
        )
    return wrong(found) if host.rail_only else right()


def _sharp(one: Environment, _host: HostFacts) -> Ruling:
    sharp = sorted(
        name
        for name in one.settings
        if name.startswith(("SHARP_COLL_", "NCCL_SHARP_")) and one.get(name) not in (None, "0")
    )
    if not sharp or one.kind == "log":
        return other(UNSET)
    if one.int("NCCL_COLLNET_ENABLE"):
        return right()
    reason = f"{one.show(sharp[0])} does nothing while NCCL_COLLNET_ENABLE is not 1"
    return wrong(warn(causes.NO_EFFECT, reason))


# --- the log ------------------------------------------------------------------------------------


def _level(one: Environment) -> str | None:
    value = one.get("NCCL_DEBUG")
    return None if value is None else value.upper()


def _chatty(one: Environment, _host: HostFacts) -> Ruling:
    level = _level(one)
    if level == "TRACE":
        reason = f"{one.show('NCCL_DEBUG')} prints every call, want WARN, or INFO for an audit"
        return wrong(warn(causes.LOGGING, reason))
    subs = one.get("NCCL_DEBUG_SUBSYS")
    if subs is None or level not in ("INFO", "ABORT"):
        return right()
    on = sorted(CHATTY & {word.strip().upper() for word in subs.lstrip("^").split(",")})
    if not on or subs.startswith("^"):
        return right()
    reason = f"{one.show('NCCL_DEBUG_SUBSYS')} prints every operation ({', '.join(on)})"
    return wrong(warn(causes.LOGGING, reason))


def _evidence(one: Environment, _host: HostFacts) -> Ruling:
    if one.is_unset("NCCL_DEBUG"):
        return right("NCCL_DEBUG is unset: NCCL writes no evidence; NCCL_DEBUG=WARN costs nothing")
    return right()


def _silenced(one: Environment, _host: HostFacts) -> Ruling:
    level = _level(one)
    if level is None:
        return other(UNSET)
    if level.strip() not in LEVELS:
        reason = f"{one.show('NCCL_DEBUG')} is no level: nothing is printed, not even warnings"
        return wrong(fail(causes.LOGGING, reason))
    text = one.get("NCCL_DEBUG_SUBSYS")
    if text is None or one.kind == "log":
        return right()
    trims = one.version is not None and one.version >= (2, 30, 7)
    on = subsystems(text, trims=trims)
    if on is None or on:
        return right()
    reason = f"{one.show('NCCL_DEBUG_SUBSYS')} holds no subsystem: even warnings are silenced"
    return wrong(fail(causes.LOGGING, reason))


def _what_is_logged(one: Environment, _host: HostFacts) -> Ruling:
    text = one.get("NCCL_DEBUG_SUBSYS")
    if text is None or _level(one) not in ("INFO", "ABORT", "TRACE"):
        return right()
    trims = one.version is not None and one.version >= (2, 30, 7)
    on = subsystems(text, trims=trims) or frozenset()
    lost = sorted({"BOOTSTRAP", "NET", "GRAPH", "ENV"} - on)
    if not lost:
        return right()
    shown = one.show("NCCL_DEBUG_SUBSYS")
    return right(f"{shown} leaves out {', '.join(lost)}: rules on the log need them")


def _log_file(one: Environment, _host: HostFacts) -> Ruling:
    path = one.get("NCCL_DEBUG_FILE")
    if path is None:
        return other(UNSET)
    lacks = []
    if "%p" not in path:
        lacks.append("no %p: processes overwrite each other's file")
    if path.startswith("~"):
        lacks.append("'~' is not expanded")
    if "%r" in path or "%R" in path:
        lacks.append("%r is not the rank")
    if not lacks or path in ("stdout", "stderr", "/dev/stdout", "/dev/stderr"):
        return right()
    return wrong(warn(causes.LOGGING, f"{one.show('NCCL_DEBUG_FILE')}: {', '.join(lacks)}"))


# --- PyTorch and the job ------------------------------------------------------------------------


def _blocks(one: Environment, _host: HostFacts) -> Ruling:
    found = []
    if one.int("TORCH_NCCL_BLOCKING_WAIT"):
        reason = f"{one.show('TORCH_NCCL_BLOCKING_WAIT')} blocks the host on every wait"
        found.append(warn(causes.TORCH, reason))
    if one.int("CUDA_LAUNCH_BLOCKING"):  # CUDA programming guide, environment variables
        reason = f"{one.show('CUDA_LAUNCH_BLOCKING')} waits for every kernel: nothing overlaps"
        found.append(warn(causes.TORCH, reason))
    if (one.get("TORCH_DISTRIBUTED_DEBUG") or "").upper() == "DETAIL":
        reason = f"{one.show('TORCH_DISTRIBUTED_DEBUG')} adds collectives to every collective"
        found.append(warn(causes.TORCH, reason))
    return wrong(*found)


def _connections(one: Environment, _host: HostFacts) -> Ruling:
    value = one.get("CUDA_DEVICE_MAX_CONNECTIONS")
    if value is None:
        return other(UNSET)
    if value != "1":  # the default is 8, and more takes nothing from anybody
        return right()
    shown = one.show("CUDA_DEVICE_MAX_CONNECTIONS")
    return unknown(
        f"{shown}: right for tensor parallelism with Megatron, wrong for FSDP and DeepSpeed",
        "a profiler trace shows whether copies and kernels overlap: commcheck analyze trace",
    )


def _meeting_point(one: Environment, _host: HostFacts) -> Ruling:
    if one.get("NCCL_COMM_ID") is None:
        return right()
    reason = f"{one.show('NCCL_COMM_ID')}: all jobs that have it meet there, want it unset"
    return wrong(warn(causes.IDENTITY, reason))


RULES: Final[tuple[EnvRule, ...]] = (
    each("ENV-030", "path levels are legal", _level_words),
    each("ENV-031", "GPU Direct keeps off the CPU link", _far),
    each("ENV-032", "NVLink is used", _nvlink, weighty=True),
    each("ENV-033", "shared memory is used", _shared),
    each("ENV-034", "NCCL chooses the algorithm", _algorithm),
    each("ENV-035", "channels fill the NICs", _channels),
    each("ENV-036", "one limit of channels", _both_limits),
    each("ENV-038", "NVSwitches reduce", _nvls, weighty=True),
    each("ENV-039", "cuMem is on", _cumem),
    each("ENV-043", "traffic stays on its rail", _cross, weighty=True),
    each("ENV-044", "all-to-all stays on its rail", _no_pxn, weighty=True),
    each("ENV-045", "SHARP settings count", _sharp),
    each("ENV-049", "the log does not flood", _chatty),
    each("ENV-050", "there is a log", _evidence),
    each("ENV-051", "warnings are not silenced", _silenced),
    each("ENV-052", "the log tells enough", _what_is_logged),
    each("ENV-053", "log files are not overwritten", _log_file),
    each("ENV-055", "communication does not block", _blocks),
    each("ENV-056", "connections fit the framework", _connections),
    each("ENV-057", "no fixed meeting point", _meeting_point),
    each("ENV-062", "disabled P2P is told", _hidden),
)
