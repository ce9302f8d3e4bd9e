"""What the ranks on a host may lock and share, and the files that their variables name.

Everything is looked at where the rank sees it: below ``/proc/PID/root``. Of a file no text leaves
the host, only what kind it is and the PCI addresses in it: the name comes from the job, and the
one who looks may be root.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import field
from typing import Final

from commcheck.check import Reader, first_of
from commcheck.command import Command, Output
from commcheck.errors import CommandFailed
from commcheck.lazy import dataclass, regex

TOOL: Final = "job-files"

FILES: Final = ("NCCL_TOPO_FILE", "NCCL_GRAPH_FILE", "NCCL_TUNER_CONFIG_FILE")
"""Variables that name a file which NCCL, or its tuner, reads."""

VIRTUAL: Final = "/var/run/nvidia-topologyd/virtualTopology.xml"
"""What NCCL reads where NCCL_TOPO_FILE is unset (NCCL src/graph/topo.cc)."""

PROCESSES_MOST: Final = 64

RANKS: Final = rf"""\
proc=$1
[ -d "$proc" ] || {{ echo "no $proc" >&2; exit 2; }}
set -- $(find "$proc" -mindepth 3 -maxdepth 3 -path '*/fd/*' \
  \( -lname '*/dev/nvidia-uvm' -o -lname '*/dev/davinci[0-9]*' \) -printf '%P\n' 2>/dev/null |
  cut -d/ -f1 | sort -un | head -n {PROCESSES_MOST})
[ $# -gt 0 ] || {{ echo end; exit 0; }}
of_all() {{ where=$1; shift
  for pid; do [ -r "$proc$pid/$where" ] && echo "$proc$pid/$where"; done; }}
variables() {{ pattern=$1; shift; set -- $(of_all environ "$@"); [ $# -gt 0 ] || return 0
  grep -sazH -E "^($pattern)=" "$@" | tr '\000\n' '\n '; }}
plain() {{ [ -f "$1" ] && [ -r "$1" ] || return 1
  case $(stat -f -c %T -- "$1" 2>/dev/null) in
    proc | sysfs | debugfs | tracefs | securityfs | cgroup*) return 1 ;;
  esac; }}
"""
"""The beginning of a script for ``sh``, ``$1`` is ``/proc/``: its words become the pids of all
ranks. ``variables PATTERN PIDS`` prints ``/proc/PID/environ:NAME=VALUE`` lines. ``plain FILE``: it
may be read. The name comes from a job, and we may be root: reading what the kernel makes up, as
/proc/kmsg, can block, or take away what somebody else waits for."""

SCRIPT: Final = rf"""{RANKS}
seen=' '
look() {{
  case $3 in /*) path=$1/root$3 ;; *) path=$1/cwd/$3 ;; esac
  if [ ! -e "$path" ]; then echo "file $2 absent - $3"; return; fi
  if ! plain "$path"; then echo "file $2 unreadable - $3"; return; fi
  key=$(stat -L -c %d:%i "$path")
  echo "file $2 read $key $3"
  case $seen in *" $key "*) return ;; esac
  seen="$seen$key "
  grep -aoE '<(system|graphs)( +[a-z_]+="[0-9a-z]*")* *>' "$path" | head -n 1 |
    sed "s|^|tag $key |"
  grep -aoE '</(system|graphs)>' "$path" | tail -n 1 | sed "s|^|end $key |"
  grep -aoE 'busid="[0-9a-fA-F:.]{{7,16}}"' "$path" | sort -u | head -n 512 |
    sed "s|^|bus $key |"
}}
for pid; do
  echo "pid $pid"
  if [ -e "$proc$pid/root{VIRTUAL}" ]; then echo "virtual $pid"; fi
done
grep -saH -e '^Max locked memory' $(of_all limits "$@") /dev/null
grep -saH -e '^CapEff:' $(of_all status "$@") /dev/null
mine=$(readlink "$proc"self/ns/mnt)
for pid; do
  [ -n "$mine" ] || break
  theirs=$(readlink "$proc$pid/ns/mnt")
  if [ -n "$theirs" ] && [ "$theirs" != "$mine" ] && [ -d "$proc$pid/root/dev/shm" ]; then
    stat -f -c "shm $pid %b %S" "$proc$pid/root/dev/shm"
  fi
done 2>/dev/null
variables '{"|".join(FILES)}' "$@" | while IFS= read -r line; do
  path=${{line%%/environ:*}}
  line=${{line#*/environ:}}
  look "$path" "${{line%%=*}}" "${{line#*=}}"
done
echo end
"""


@dataclass(frozen=True, slots=True)
class NamedFile:
    """A file that a rank's variable names. ``state``: "read", "absent" or "unreadable".

    ``kind``: the XML document's element ("system" is a topology, "graphs" a graph) or "" where
    it is none; ``version``: of its form. ``whole``: it has an end. ``buses``: PCI addresses.
    """

    variable: str
    path: str
    state: str
    kind: str = ""
    version: str = ""
    whole: bool = False
    buses: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Rank:
    """What one process may do. ``locked_bytes``: -1 without limit; None: not known.

    ``shm_bytes``: of its container's /dev/shm, where it has a container.
    """

    pid: int
    locked_bytes: int | None = None
    shm_bytes: int | None = None
    virtual_topology: bool = False


@dataclass(frozen=True, slots=True)
class JobFiles:
    """The ranks on a host and the files that they name."""

    ranks: tuple[Rank, ...] = ()
    files: tuple[NamedFile, ...] = ()


_LOCKED: Final = regex(r".*/(\d+)/limits:Max locked memory +(\d{1,20}|unlimited) .*")
_CAPS: Final = regex(r".*/(\d+)/status:CapEff:\s*([0-9a-f]{1,16})")
_SHM: Final = regex(r"shm (\d+) (\d{1,18}) (\d{1,9})")
_PID: Final = regex(r"(pid|virtual) (\d{1,10})")
_FILE: Final = regex(r"file (\w+) (read|absent|unreadable) (\S+) (.+)")
_FACT: Final = regex(r"(tag|end|bus) (\d+:\d+) (.+)")
_TAG: Final = regex(r"<(\w+)(?:.*? version=\"(\w*)\")?.*>")
_CAP_IPC_LOCK: Final = 14
"""Who has it is exempt from the limit (capabilities(7))."""


@dataclass(slots=True)
class _Draft:
    """By pid: what is told of it. By a file's key: what is in it."""

    pids: list[int] = field(default_factory=list)
    limits: dict[int, int] = field(default_factory=dict)
    exempt: dict[int, bool] = field(default_factory=dict)
    shm: dict[int, int] = field(default_factory=dict)
    virtual: set[int] = field(default_factory=set)
    named: dict[tuple[str, str, str], str] = field(default_factory=dict)
    facts: dict[str, dict[str, list[str]]] = field(default_factory=dict)


def parse(output: Output) -> JobFiles:
    """The script's answer. Raises ``CommandFailed`` where it did not come to its end."""
    lines = output.text.split("\n")
    if output.rc or "end" not in lines:
        raise CommandFailed(f"what the ranks on the host name was not read: {output.complaint}")
    draft = _Draft()
    for line in lines:
        _take(draft, line)
    files = tuple(
        _named(variable, path, state, draft.facts.get(key, {}))
        for (variable, path, state), key in draft.named.items()
    )
    return JobFiles(tuple(_rank(draft, pid) for pid in draft.pids), files)


def _take(draft: _Draft, line: str) -> None:
    if match := _PID.fullmatch(line):
        if match[1] == "pid":
            draft.pids.append(int(match[2]))
        else:
            draft.virtual.add(int(match[2]))
    elif match := _LOCKED.fullmatch(line):
        draft.limits[int(match[1])] = -1 if match[2] == "unlimited" else int(match[2])
    elif match := _CAPS.fullmatch(line):
        draft.exempt[int(match[1])] = bool(int(match[2], 16) >> _CAP_IPC_LOCK & 1)
    elif match := _SHM.fullmatch(line):
        draft.shm[int(match[1])] = int(match[2]) * int(match[3])
    elif match := _FILE.fullmatch(line):
        draft.named.setdefault((match[1], match[4], match[2]), match[3])
    elif match := _FACT.fullmatch(line):
        draft.facts.setdefault(match[2], {}).setdefault(match[1], []).append(match[3])


def _rank(draft: _Draft, pid: int) -> Rank:
    locked = draft.limits.get(pid)
    if draft.exempt.get(pid):
        locked = -1
    elif pid not in draft.exempt and locked != -1:
        locked = None  # whether the limit counts is not known
    return Rank(
        pid=pid,
        locked_bytes=locked,
        shm_bytes=draft.shm.get(pid),
        virtual_topology=pid in draft.virtual,
    )


def _named(variable: str, path: str, state: str, facts: Mapping[str, list[str]]) -> NamedFile:
    tag = _TAG.fullmatch(facts.get("tag", [""])[0])
    kind = tag[1] if tag else ""
    return NamedFile(
        variable=variable,
        path=path,
        state=state,
        kind=kind,
        version=(tag[2] or "") if tag else "",
        whole=bool(kind) and facts.get("end", [""])[0] == f"</{kind}>",
        buses=tuple(each.partition('"')[2].rstrip('"').lower() for each in facts.get("bus", ())),
    )


def _reader(*, root: bool) -> Reader[JobFiles]:
    command = Command(
        ("sh", "-c", SCRIPT, "sh", "/proc/"),
        timeout_s=20,
        root=root,
        cap_bytes=4 << 20,
        said_as=("job-files", "/proc/"),
    )
    return Reader(tool=TOOL, commands=(command,), parse=parse, varies=True)


JOB_FILES: Final = first_of(_reader(root=True), _reader(root=False))
"""Without root only the own processes are seen."""
