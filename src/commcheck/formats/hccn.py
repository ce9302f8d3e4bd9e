"""``hccn_tool``: one query, asked of every NPU of a host, one after the other.

The tool serves one caller at a time and answers "is busy" to the second (an exporter that polls it
is enough), so the script waits and asks again, up to about 20 s for all. It needs the driver's
libraries, which a login of SSH does not name. ``-i`` takes the physical chip id.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import field
from typing import Final, Generic, TypeVar

from commcheck.check import Reader
from commcheck.command import Command, Output
from commcheck.errors import CommandFailed, ParseError
from commcheck.lazy import dataclass, regex

R = TypeVar("R")

SCRIPT: Final = """\
command -v hccn_tool >/dev/null || { echo hccn_tool: not found >&2; exit 127; }
l=/usr/local/Ascend/driver/lib64
LD_LIBRARY_PATH=$l:$l/driver:$l/common:$LD_LIBRARY_PATH
export LD_LIBRARY_PATH
t=0 ids=$1
shift
ask() {
  while a=$(hccn_tool -i "$@" 2>&1); r=$?; [ $t -lt 6 ]; do
    case $a in *'is busy'*) t=$((t + 1)); sleep $t ;; *) break ;; esac
  done
}
IFS=:
for n in $ids; do
  IFS=' '
  ask $n "$@"
  printf '[npu %s rc %s]\\n%s\\n' $n $r "$a"
  case "$*:$a" in
    -link\\ -g:*DOWN*)
      for m in $(echo "$ids" | tr : ' '); do
        if [ $m != $n ]; then
          ask $m -vnic -g
          v=
          case $a in *'vnic ipaddr: '*) v=${a#*vnic ipaddr: }; v=${v%%[!0-9.]*} ;; esac
          if [ -n "$v" ]; then ask $n -hccs_ping -g address $v; printf '[hccs]\\n%s\\n' "$a"; fi
          break
        fi
      done ;;
  esac
done
echo '[end]'
"""
"""Where a link is down it also asks whether the NPU reaches another over HCCS, as on an A3.

Every word comes from here but the ids, which are numbers.
"""

PING_S: Final = 4.0
"""Seconds that three packets take, and the tool to start."""

FAILURES: Final = regex(
    r"hccn_tool is busy|Command execute failed!|Cmd execute failed!|permission denied: |"
    r"The device is not exist!|Get device health status failed!|The cmd line execute timeout!|"
    r"The VM does not support this command|The command is not supported on this product|"
    r".*error while loading shared libraries"
)
"""What the tool says where it could not answer; it often exits 0 then."""

_HEAD: Final = regex(r"\[npu (\d{1,2}) rc (\d{1,3})\]")


@dataclass(frozen=True, slots=True)
class PerNpu(Generic[R]):
    """What a query says of each NPU, by physical chip id, or why it says nothing."""

    values: tuple[tuple[int, R], ...]
    failed: tuple[tuple[int, str], ...] = field(default=(), compare=False)  # no fact of an NPU

    def of(self, npu: int) -> R:
        """The answer of an NPU. Raises ``CommandFailed`` where it has none."""
        for each, value in self.values:
            if each == npu:
                return value
        why = dict(self.failed).get(npu, "the tool was not asked of it")
        raise CommandFailed(
            f"npu{npu}: hccn_tool did not answer: {why}",
            "run it by hand as root, on the host and not in a container",
        )


def sections(output: Output, tool: str) -> list[tuple[int, int, str]]:
    """NPU, exit code and answer of each. Raises ``ParseError`` where the script did not end."""
    text = output.text
    body, end, after = text.partition("[end]\n")
    if not end or after or output.rc:
        raise ParseError(tool, text, "an answer of each NPU and [end]")
    found: list[tuple[int, int, list[str]]] = []
    for line in body.split("\n")[:-1]:
        if (head := _HEAD.fullmatch(line)) is not None:
            found.append((int(head[1]), int(head[2]), []))
        elif not found or line.startswith("[npu"):
            raise ParseError(tool, text, "[npu N rc N] before each answer")
        else:
            found[-1][2].append(line)
    numbers = [npu for npu, _, _ in found]
    if len(set(numbers)) != len(numbers):
        raise ParseError(tool, text, "one answer of each NPU")
    return [(npu, rc, "".join(f"{line}\n" for line in lines)) for npu, rc, lines in found]


def per_npu(
    query: str, parse: Callable[[str, str], R], *, timeout_s: float = 90
) -> Reader[PerNpu[R]]:
    """A reader of one ``-g`` query. ``parse`` gets an NPU's answer, and the reader's name."""
    words = tuple(query.split())
    tool = f"hccn_tool{words[0].replace('_', '-')}"

    def read(output: Output) -> PerNpu[R]:
        values, failed = [], []
        unread: ParseError | None = None
        for npu, rc, text in sections(output, tool):
            first = next(iter(text.split("\n")), "").strip()
            if FAILURES.match(first):
                failed.append((npu, first[:160]))
                continue
            if rc and not text.strip():  # killed, say: silence means "none set" at rc 0 only
                failed.append((npu, f"exit code {rc}, and no message"))
                continue
            try:
                values.append((npu, parse(text, tool)))
            except ParseError as error:
                said = first[:120] or "no message"
                failed.append((npu, f"exit code {rc}: {said}" if rc else f"not readable: {said}"))
                unread = unread or (error if rc == 0 else None)
        # One NPU that answers otherwise leaves the others; where all do, the layout is not known.
        if unread is not None and not values:
            raise unread
        return PerNpu(tuple(values), tuple(failed))

    command = Command(
        ("sh", "-c", SCRIPT, "hccn_tool", "{npus}", *words),
        timeout_s=timeout_s,
        root=True,
        said_as=("hccn_tool", "-i", "N", *words),
    )
    return Reader(tool=tool, commands=(command,), parse=read)
