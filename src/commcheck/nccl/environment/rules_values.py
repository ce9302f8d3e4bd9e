"""Rules on names and values as such: ENV-002 to ENV-009, ENV-023 to ENV-025, ENV-037, ENV-054,
ENV-065."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from typing import Final

from commcheck.nccl.environment import causes
from commcheck.nccl.environment.causes_given import NOT_HANDED_ON
from commcheck.nccl.environment.model import ECHO, Case, Environment, HostFacts
from commcheck.nccl.environment.names import (
    DEAD,
    TORCH_OLD,
    default_of,
    is_foreign,
    nearest,
    newest,
    params,
    shown,
)
from commcheck.nccl.environment.rule import UNSET, EnvRule, each, fail, warn
from commcheck.nccl.environment.values import number, stray
from commcheck.nccl.environment.vendor import HCCL, HCCL_WITHOUT_BLANKS, TORCH
from commcheck.nccl.ruling import Found, Ruling, other, right, unknown, wrong

BANNER: Final = "give a log with NCCL's version line, or declare commcheck_nccl_version"


def _ours(one: Environment) -> list[str]:
    return sorted(name for name in one.settings if name.startswith("NCCL_") and one.get(name))


def _misspelt(one: Environment, host: HostFacts) -> Ruling:
    if one.kind == ECHO:
        return other("a log echoes only names that NCCL knows")
    if one.version is not None and one.version > newest():
        return unknown(
            f"NCCL {shown(one.version)} is newer than what commcheck knows of its variables",
            "a newer commcheck",
        )
    found = [*_unknown_nccl(one, host), *_near_others(one)]
    return wrong(*found)


def _unknown_nccl(one: Environment, host: HostFacts) -> Iterator[Found]:
    for name in _ours(one):
        if name in params() or name in DEAD or is_foreign(name, host.known):
            continue
        near = nearest(name, params())
        hint = f": did you mean {near}?" if near else ""
        yield warn(causes.MISSPELT, f"NCCL has no variable {name} ({one.where(name)}){hint}")


def _near_others(one: Environment) -> Iterator[Found]:
    """Of other libraries only what is nearly a known name: their lists are not complete."""
    for start, known in (("HCCL_", HCCL), ("TORCH_NCCL_", TORCH)):
        for name in sorted(one.settings):
            if name.startswith(start) and name not in known and one.get(name):
                near = nearest(name, known)
                if near:
                    where = one.where(name)
                    reason = f"no variable {name} is known ({where}): did you mean {near}?"
                    yield warn(causes.MISSPELT, reason)


def _dead(one: Environment, _host: HostFacts) -> Ruling:
    found = []
    for name in _ours(one):
        param = params().get(name)
        if name in DEAD:
            found.append(warn(causes.NO_EFFECT, f"{one.show(name)} does nothing: {DEAD[name]}"))
        elif param and param.last and one.version and one.version > param.last:
            reason = f"{one.show(name)} does nothing: gone after NCCL {shown(param.last)}"
            found.append(warn(causes.NO_EFFECT, reason))
    return wrong(*found)


def _too_new(one: Environment, host: HostFacts) -> Ruling:
    known = [params()[name] for name in _ours(one) if name in params()]
    if host.network:
        return other("a plugin carries the traffic and reads its own copy of the names")
    if one.version is None:
        late = [each.name for each in known if each.first > (2, 20, 0)]
        if not late:
            return right()
        return unknown(f"whether this NCCL knows {', '.join(late[:4])} is not known", BANNER)
    return wrong(
        *(
            warn(
                causes.NO_EFFECT,
                f"{one.show(each.name)} does nothing: NCCL {shown(one.version)} runs, and it "
                f"came with {shown(each.first)}",
            )
            for each in known
            if each.first > one.version
        )
    )


def _numbers(one: Environment) -> list[str]:
    known = params()
    return [name for name in _ours(one) if name in known and known[name].is_integer]


def _no_number(one: Environment, _host: HostFacts) -> Ruling:
    if one.kind == ECHO:
        return other("a log echoes what was parsed")
    found = []
    for name in _numbers(one):
        value = one.get(name) or ""
        read = number(value)
        if read.whole or (read.digits and stray(value)):
            continue
        reason = f"{one.show(name)} is no number: NCCL reads {read.value}"
        found.append(fail(causes.NOT_A_NUMBER, reason, read=read.value))
    off = one.get("NCCL_P2P_DISABLE")
    if off is not None and off not in ("0", "1"):
        reason = f"{one.show('NCCL_P2P_DISABLE')}: only exactly 1 disables"
        found.append(fail(causes.NOT_A_NUMBER, reason))
    return wrong(*found)


def _octal(one: Environment, _host: HostFacts) -> Ruling:
    if one.kind == ECHO:
        return other("a log echoes what was parsed")
    return wrong(
        *(
            warn(causes.NOT_A_NUMBER, f"{one.show(name)} is octal: NCCL reads {read.value}")
            for name in _numbers(one)
            if (read := number(one.get(name) or "")).octal
        )
    )


def _overridden(case: Case) -> Ruling:
    """What NCCL's lines echo against what the job's environment says."""
    return _against_echo(case, "ENV-007", "NCCL")


def _hccl_overridden(case: Case) -> Ruling:
    """What HCCL's lines echo, defaults included, against the same."""
    return _against_echo(case, "HENV-011", "HCCL")


def _against_echo(case: Case, rule: str, library: str) -> Ruling:
    start = f"{library}_"
    echoes = [
        one
        for one in case.environments
        if one.kind == ECHO and any(name.startswith(start) for name in one.settings)
    ]
    declared = [one for one in case.ranks if one.kind != ECHO]
    if not echoes or len(declared) != 1:
        return unknown(
            "no log and environment of one job to compare",
            "give both: the log at NCCL_DEBUG=INFO with subsystem ENV, or HCCL's run/plog, and "
            "the environment",
        )
    found: dict[str, Found] = {}
    for echo in echoes:
        for name, setting in echo.settings.items():
            want = declared[0].get(name)
            if want is None or not name.startswith(start):
                continue
            if not _same(name, want, setting.value):
                reason = f"{declared[0].show(name)}, but {library} says {setting.value}"
                found.setdefault(reason, Found(rule=rule, cause=causes.OVERRIDDEN, reason=reason))
    return wrong(*found.values())


def _same(name: str, want: str, echoed: str) -> bool:
    if name == "NCCL_P2P_LEVEL" and echoed == "LOC":
        return want in ("LOC", "0")
    param = params().get(name)
    if name.startswith("HCCL_"):
        left, right_ = number(want), number(echoed)
        same = want.replace(" ", "").lower() == echoed.replace(" ", "").lower()
        return same or (left.is_plain and right_.is_plain and left.value == right_.value)
    if param is not None and param.is_integer:
        return number(want).value == number(echoed).value
    return want.strip() == echoed.strip()


def _stray(one: Environment, _host: HostFacts) -> Ruling:
    if one.kind == ECHO:
        return other("a log echoes what was parsed")
    found = []
    for name in sorted(one.settings):
        value = one.get(name)
        if value is None or not name.startswith(("NCCL_", "HCCL_")) or is_foreign(name):
            continue
        if name in HCCL_WITHOUT_BLANKS:
            value = re.sub(" +(?!#)", "", value)  # a comment stays one
        what = stray(value)
        if not what:
            continue
        is_number = name in params() and params()[name].is_integer
        if is_number and not number(value).digits:
            continue  # ENV-005 says it
        harmless = is_number or name in ("NCCL_DEBUG_SUBSYS", "NCCL_DEBUG_TIMESTAMP_FORMAT")
        say = warn if harmless else fail
        found.append(say(causes.STRAY_TEXT, f"{one.show(name)} holds {what}"))
    return wrong(*found)


def _ignored(one: Environment, _host: HostFacts) -> Ruling:
    return wrong(
        *(
            warn(causes.CONF_SYNTAX, f"{where}: sets nothing: {line.strip()[:80]!r}")
            for where, line in one.ignored
        )
    )


def _handed_on(one: Environment, _host: HostFacts) -> Ruling:
    return wrong(*(warn(NOT_HANDED_ON, reason) for reason in one.lost))


LEGAL: Final[Mapping[str, tuple[int, int]]] = {
    "NCCL_IB_TIMEOUT": (1, 31),
    "NCCL_IB_RETRY_CNT": (1, 7),
    "NCCL_IB_TC": (-1, 255),
    "NCCL_IB_SL": (-1, 15),
    "NCCL_IB_QPS_PER_CONNECTION": (1, 128),
    "NCCL_CROSS_NIC": (0, 2),
}
"""Least and largest legal values (InfiniBand specification; NCCL user guide)."""


def _range(one: Environment, _host: HostFacts) -> Ruling:
    found = []
    for name, (low, high) in LEGAL.items():
        read = one.number(name)
        if read is not None and read.digits and not low <= read.value <= high:
            reason = f"{one.show(name)} is outside of {low} to {high}"
            found.append(fail(causes.OUT_OF_RANGE, reason))
    return wrong(*found)


def _buffer(one: Environment, _host: HostFacts) -> Ruling:
    size = one.int("NCCL_BUFFSIZE")
    if size is None:
        return other(UNSET)
    if size >= 1 << 20 and size & (size - 1) == 0:
        return right()
    say = fail if size < 64 << 10 else warn
    reason = f"{one.show('NCCL_BUFFSIZE')} is {size} bytes, want a power of two from 1048576"
    return wrong(say(causes.OUT_OF_RANGE, reason, bytes=size))


def _timeout(one: Environment, host: HostFacts) -> Ruling:
    name = "NCCL_IB_TIMEOUT"
    value = one.int(name)
    if value is None or not 1 <= value <= 31:
        return other(UNSET)
    if host.network:
        return other("a plugin carries the traffic, with a default of its own")
    default = default_of(name, one.version) if one.version else None
    least = int(default) if default is not None else 14
    if (one.int("WORLD_SIZE") or 0) >= 64:
        least = max(least, 18)
    if value < least:
        reason = f"{one.show(name)} gives up after {4.096e-6 * 2**value:.2g} s, want {least}"
        return wrong(warn(causes.OUT_OF_RANGE, f"{reason} or more"))
    if one.version is None and value < 20:
        return unknown(f"whether {one.show(name)} is below the default is not known", BANNER)
    return right()


def _patient(one: Environment, _host: HostFacts) -> Ruling:
    name = "NCCL_IB_TIMEOUT"
    value = one.int(name)
    if value is None or not 23 < value <= 31:
        return right() if value is not None else other(UNSET)
    waits_s = 4.096e-6 * 2**value * 8
    return right(f"{one.show(name)}: a dead peer is noticed after {waits_s / 60:.0f} min or more")


def _renamed(one: Environment, _host: HostFacts) -> Ruling:
    """Old names of PyTorch, and a watchdog that is off."""
    found = []
    if one.int("TORCH_NCCL_ASYNC_ERROR_HANDLING") == 0:
        reason = f"{one.show('TORCH_NCCL_ASYNC_ERROR_HANDLING')}: a fault hangs for ever"
        found.append(warn(causes.TORCH, reason))
    if one.torch is None or one.torch >= (2, 2, 0):
        found += [
            warn(causes.TORCH, f"{one.show(old)} is {new} since PyTorch 2.2")
            for old, new in TORCH_OLD.items()
            if one.get(old) is not None and one.get(new) is None
        ]
    return wrong(*found)


RULES: Final[tuple[EnvRule, ...]] = (
    each("ENV-002", "names are known", _misspelt),
    each("ENV-003", "no name of long ago", _dead),
    each("ENV-004", "the library knows the names", _too_new),
    each("ENV-005", "numbers are numbers", _no_number),
    each("ENV-006", "no number is octal", _octal),
    EnvRule("ENV-007", "NCCL uses what is set", _overridden),
    EnvRule("HENV-011", "HCCL uses what is set", _hccl_overridden),
    each("ENV-008", "values are what was meant", _stray),
    each("ENV-009", "lines of configuration files count", _ignored),
    each("ENV-065", "the ranks get what is set", _handed_on),
    each("ENV-023", "time-outs are long enough", _timeout),
    each("ENV-024", "values are legal", _range),
    each("ENV-025", "a dead peer is noticed soon", _patient),
    each("ENV-037", "buffers are large enough", _buffer),
    each("ENV-054", "PyTorch's watchdog is on", _renamed),
)
