"""``commcheck analyze``: the same rules and reports, on files that somebody already has."""

from __future__ import annotations

from typing import Any

import click

from commcheck.options import INVENTORY, STRICT, WHERE, a_path, together


@click.group()
def analyze() -> None:
    """Judge files: logs, environments, sweeps, traces, settings. No host is asked.

    Each leaves a run folder with the reports of a run, and ends with its exit codes.
    """


_FILES = click.argument("paths", nargs=-1, required=True, type=a_path(), metavar="PATH...")
_TEXTS = click.argument("paths", nargs=-1, required=True, metavar="PATH...")
_POSITIVE = click.FloatRange(0, min_open=True)


@analyze.command(short_help="NCCL and HCCL logs: what the library says it does.")
@_TEXTS
@INVENTORY
@click.option(
    "--processes",
    type=click.IntRange(1, 64),
    default=1,
    show_default=True,
    help="Processes that read large files.",
)
@STRICT
@together(*WHERE)
def log(**options: Any) -> int:
    """Audit the logs of a job: files, folders, globs, or - for stdin; plain, gz, bz2 or xz.

    Give the logs of all ranks: what one rank leaves out, another may say. An inventory tells which
    names are one machine, and what its rails are.
    """
    from commcheck.offline import log as command

    return command(**options)


@analyze.command(short_help="nccl-tests, rccl-tests, hccl_test, perftest: what the wire carried.")
@_FILES
@click.option(
    "--nic-gbps",
    "nic_gbits",
    type=_POSITIVE,
    metavar="GBITS",
    help="Line rate of one NIC port in Gb/s; without it the network's bound is not known.",
)
@click.option(
    "--rails",
    type=click.IntRange(1),
    metavar="N",
    help="NICs a host.  [default: as NCCL's lines in the file say]",
)
@click.option(
    "--reference",
    "reference_gbytes",
    type=_POSITIVE,
    metavar="GBYTES",
    help="busbw in GB/s of the same run on hosts known to be good.",
)
@click.option(
    "--algorithm", default="", metavar="NAME", help="ring, tree, nvls: where it was forced."
)
@click.option(
    "--collective", metavar="NAME", help="all_reduce, ...; where the text does not say it."
)
@click.option("--ranks", "nranks", type=click.IntRange(1), metavar="N", help="Ranks asked for.")
@click.option("--hosts", type=click.IntRange(1), metavar="N", help="Hosts asked for.")
@STRICT
@together(*WHERE)
def sweep(**options: Any) -> int:
    """Hold the outputs of bandwidth tests against the physical bound, and name the fault's shape.

    Several files with a pair of hosts each are searched for the host or path at fault.
    """
    from commcheck.offline import sweep as command

    return command(**options)


@analyze.command(short_help="Profiler traces: communication that hides, and that hurts.")
@_FILES
@click.option(
    "--before",
    type=a_path(),
    multiple=True,
    metavar="PATH",
    help="Traces from before a change: say what it brought.",
)
@click.option(
    "--busbw",
    "busbw_gbytes",
    type=_POSITIVE,
    metavar="GBYTES",
    help="busbw in GB/s that a sweep measured: the wire of the trace is held against it.",
)
@click.option(
    "--kernel",
    "kernels",
    multiple=True,
    metavar="REGEX",
    help="Names of communication kernels beyond the known ones.",
)
@click.option(
    "--processes",
    type=click.IntRange(0, 64),
    default=0,
    help="Processes that read files.  [default: one a core]",
)
@STRICT
@together(*WHERE)
def trace(**options: Any) -> int:
    """Analyse the traces of a training step: torch.profiler or torch_npu, one file a rank.

    PATH is a .json or .json.gz, or a folder of them. One rank is enough to see exposed
    communication; late ranks show only beside the others.
    """
    from commcheck.offline import trace as command

    return command(**options)
