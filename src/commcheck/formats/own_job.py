"""``/proc/self/cgroup``: the Slurm job that this session is in, if any.

A session that pam_slurm_adopt puts into a job, or that was started in one, sees only the GPUs that
the job was given, where the site constrains devices.
"""

from __future__ import annotations

from typing import Final

from commcheck.check import Reader
from commcheck.command import Command, Output, require_ok
from commcheck.errors import ParseError
from commcheck.formats.lines import only, whole_lines
from commcheck.lazy import regex

TOOL: Final = "own-cgroup"

_LINE: Final = regex(r"\d{1,3}:[^:]{0,200}:(/.*)")
_JOB: Final = regex(r"slurm[^/]*/(?:[^/]+/)?job_(\d{1,12})(?:/|$)")


def parse(output: Output) -> str:
    """The job's id; "" outside of any."""
    require_ok(output, "cat")
    paths = [only(_LINE, line, output.text, TOOL)[1] for line in whole_lines(output.text, TOOL)]
    jobs = {match[1] for path in paths if (match := _JOB.search(path))}
    if len(jobs) > 1:
        raise ParseError(TOOL, output.text, "one job of Slurm at most")
    return jobs.pop() if jobs else ""


OWN_JOB: Final = Reader(
    tool=TOOL, commands=(Command(("cat", "/proc/self/cgroup")),), parse=parse, varies=True
)
