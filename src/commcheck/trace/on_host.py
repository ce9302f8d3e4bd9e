"""The newest traces that a job's profiler left on a host, packed and carried away in text.

Source: torch.profiler tensorboard_trace_handler (WORKER.TIMESTAMP.pt.trace.json, also .gz), and
torch_npu (WORKER_TIMESTAMP_ascend_pt/ASCEND_PROFILER_OUTPUT/trace_view.json), MindSpore's
_ascend_ms.
"""

from __future__ import annotations

import base64
import binascii
from collections.abc import Mapping
from typing import Final

from commcheck.check import Key, Reader
from commcheck.command import GLOB, Command, Output
from commcheck.errors import CommandFailed, ParseError
from commcheck.lazy import dataclass

TOOL: Final = "profiler-traces"
MOST: Final = 16
"""Files that are taken, the newest first: one for each accelerator of a host."""

PACKED_BYTES: Final = 8 << 20
"""Of one trace when packed: some hundred thousand events."""

SCRIPT: Final = f"""\
set -- $1
if [ -d "$1" ]; then
  set -- "$1"/*.json "$1"/*.json.gz "$1"/*_ascend_[pm][ts]/ASCEND_PROFILER_OUTPUT/trace_view.json
fi
ls -td -- "$@" 2>/dev/null | head -n {MOST} | while IFS= read -r file; do
  [ -f "$file" ] || continue
  printf 'trace %s\n' "$file"
  case $file in *.gz) cat -- "$file" ;; *) gzip -c -1 -- "$file" ;; esac |
    head -c {PACKED_BYTES + 1} | base64
  printf 'end\n'
done
"""
"""Expands the pattern and nothing else."""


@dataclass(frozen=True, slots=True)
class HostTraces:
    """Gzip bytes by path, the newest first. ``too_large``: paths of those that were not carried."""

    packed: Mapping[str, bytes]
    too_large: tuple[str, ...]


def parse(output: Output) -> HostTraces:
    """The traces. Raises ``CommandFailed`` where none was found, ``ParseError`` for a cut one."""
    packed: dict[str, bytes] = {}
    too_large = []
    for part in output.stdout.split("trace /")[1:]:
        name, _, rest = part.partition("\n")
        text, mark, _ = rest.rpartition("end\n")
        try:
            data = base64.b64decode("".join(text.split()), validate=True)
        except binascii.Error:
            mark = ""
        if not mark:
            raise ParseError(TOOL, part[:200], "a whole trace")
        if len(data) > PACKED_BYTES:
            too_large.append(f"/{name}")
        else:
            packed[f"/{name}"] = data
    if not packed and not too_large:
        raise CommandFailed("no file of that name or in that folder is a trace")
    return HostTraces(packed, tuple(too_large))


def _pattern(value: object) -> str:
    if not isinstance(value, str) or not GLOB.fullmatch(value) or ".." in value:
        raise ValueError(f"wanted an absolute path or pattern like /data/traces, not {value!r}")
    return value


TRACES: Final[Key[str | None]] = Key(
    name="commcheck_traces",
    read=_pattern,
    meaning="folder or glob of the profiler traces that a job leaves on the host",
)
HOST_TRACES: Final = Reader(
    tool=TOOL,
    commands=(
        Command(
            ("sh", "-c", SCRIPT, "sh", "{traces}"),
            timeout_s=120,
            cap_bytes=int(MOST * PACKED_BYTES * 1.4),
            globs=True,
            said_as=("profiler-traces", "{traces}"),
        ),
    ),
    parse=parse,
)
