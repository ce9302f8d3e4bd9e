"""The logs that the ranks on a host write now: NCCL_DEBUG_FILE of each, as NCCL fills it in.

``%h`` is the host's name to its first dot, ``%p`` the pid as the rank's own container counts it.
The files are only read, both ends of each, and only lines of the libraries leave the host.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from functools import lru_cache
from typing import Final

from commcheck.check import Reader, first_of
from commcheck.command import Command, Output
from commcheck.errors import CommandFailed
from commcheck.lazy import dataclass, regex
from commcheck.nccl.facts import Job
from commcheck.nccl.host_log import GREP
from commcheck.nccl.job_files import RANKS
from commcheck.nccl.reader import Desk, FileReader
from commcheck.nccl.scan import Scanner, chunks

TOOL: Final = "job-logs"

HALF_BYTES: Final = 1 << 19
"""Read of both ends of each file: init stands at the one, errors at the other."""

FILE: Final = "#commcheck: file"
CUT: Final = "#commcheck: lines of the middle were left out on the host#"

SCRIPT: Final = rf"""{RANKS}
mine=$(uname -n)
fill() {{ rest=$1; filled=
  while :; do
    case $rest in
      *%*) filled=$filled${{rest%%\%*}}; rest=${{rest#*%}} ;;
      *) break ;;
    esac
    case $rest in
      h*) filled=$filled$host; rest=${{rest#h}} ;;
      p*) filled=$filled$inner; rest=${{rest#p}} ;;
      %*) filled=$filled%; rest=${{rest#%}} ;;
      *) filled=$filled% ;;
    esac
  done
  filled=$filled$rest
}}
names=$(variables HOSTNAME "$@")
inners=$(grep -saH '^NSpid:' $(of_all status "$@") /dev/null)
seen=' '
variables NCCL_DEBUG_FILE "$@" | while IFS= read -r line; do
  at=${{line%%/environ:*}}; pid=${{at##*/}}; given=${{line#*/environ:NCCL_DEBUG_FILE=}}
  inner=${{inners##*"$at/status:NSpid:"}}
  if [ "$inner" = "$inners" ]; then inner=$pid; fi
  inner=${{inner%%
*}}
  inner=${{inner##*	}}
  host=${{names##*"$at/environ:HOSTNAME="}}
  if [ "$host" = "$names" ]; then host=$mine; fi
  host=${{host%%
*}}
  host=${{host%%.*}}
  fill "$given"
  case $filled in
    "") continue ;;
    /*) path=$at/root$filled ;;
    *) path=$at/cwd/$filled ;;
  esac
  if ! plain "$path"; then echo "{FILE} none $filled"; continue; fi
  told=$(stat -L -c '%d:%i %s %Y' "$path")
  key=${{told%% *}}; told=${{told#* }}
  case $seen in *" $key "*) continue ;; esac
  seen="$seen$key "
  echo "{FILE} $told $filled"
  if [ "${{told% *}}" -le {2 * HALF_BYTES} ]; then {GREP} "$path"; continue; fi
  head -c {HALF_BYTES} "$path" | sed '$d' | {GREP}
  echo '{CUT}'
  tail -c {HALF_BYTES} "$path" | sed 1d | {GREP}
done
date '+end %s'
"""


@dataclass(frozen=True, slots=True)
class JobLog:
    """One file. ``age_s``: since it last grew; None: it is closed, or nobody knows.

    ``truncated``: lines of its middle are missing.
    """

    name: str
    text: str
    age_s: float | None
    truncated: bool


@dataclass(frozen=True, slots=True)
class JobLogs:
    """The files that were read, and the names of those that are not there or not readable.

    ``live``: those of processes that run; who ended has none.
    """

    logs: tuple[JobLog, ...] = ()
    missing: tuple[str, ...] = ()
    live: bool = True


_HEAD: Final = regex(rf"{FILE} (?:none|(\d+) (\d+)) (.+)")
_END: Final = regex(r"^end(?: (\d+))?$", re.MULTILINE)


def parse(output: Output) -> JobLogs:
    """The script's answer. Raises ``CommandFailed`` where it did not come to its end."""
    ends = _END.findall(output.stdout[-40:])
    if output.rc or not ends:
        raise CommandFailed(f"the logs of the ranks here were not read: {output.complaint}")
    now = int(ends[-1] or 0)
    body = output.stdout[: output.stdout.rfind("end")]
    logs: list[JobLog] = []
    missing: list[str] = []
    for part in re.split(rf"^(?={FILE} )", body, flags=re.MULTILINE):
        first, _, text = part.partition("\n")
        head = _HEAD.fullmatch(first)
        if head is None:
            continue
        if head[1] is None:
            missing.append(head[3])
            continue
        truncated = f"{CUT}\n" in text
        age = float(max(0, now - int(head[2])))
        logs.append(JobLog(head[3], text.replace(f"{CUT}\n", ""), age, truncated))
    return JobLogs(tuple(logs), tuple(dict.fromkeys(missing)))


@lru_cache(maxsize=4)
def facts_of(logs: JobLogs) -> Job:
    """What all files say, as one job; only to be read. The last few are remembered."""
    desk = Desk()
    desk.job.live = logs.live
    take(desk, logs.logs)
    return desk.finish()


def take(desk: Desk, logs: Iterable[JobLog], prefix: str = "") -> None:
    """Reads files at a desk, which may hold other ones. ``prefix``: of their names."""
    for log in logs:
        reader = FileReader(desk, f"{prefix}{log.name}")
        if log.age_s is not None:
            desk.job.file_age_s[len(desk.job.files) - 1] = log.age_s
        scanner = Scanner(reader)
        for chunk in chunks(log.text.encode("utf-8", "replace")):
            scanner.feed(chunk)
        cut = scanner.close() or log.truncated
        desk.job.stats.lines += scanner.number
        reader.close(cut=cut)


def _reader(*, root: bool) -> Reader[JobLogs]:
    command = Command(
        ("sh", "-c", SCRIPT, "sh", "/proc/"),
        timeout_s=30,
        root=root,
        cap_bytes=64 * (2 * HALF_BYTES + 512),
        said_as=(TOOL, "/proc/"),
    )
    return Reader(tool=TOOL, commands=(command,), parse=parse, varies=True)


JOB_LOGS: Final = first_of(_reader(root=True), _reader(root=False))
"""Without root only the logs of the own processes are found."""
