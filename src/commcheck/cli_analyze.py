"""``commcheck analyze``: the same rules and reports, on files that somebody already has."""

from __future__ import annotations

from typing import Any

import click

from commcheck.options import BUSBW, INVENTORY, LIMIT, STRICT, WHERE, a_path, together


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
    names are one machine, and what its rails are. ray:http://HEAD:8265/ID is a job of Ray: the logs
    of its driver and its workers.
    """
    from commcheck.offline import log as command

    return command(**options)


@analyze.command(short_help="Environments: what NCCL, HCCL, UCX, Gloo and torch are told.")
@_TEXTS
@INVENTORY
@STRICT
@together(*WHERE)
def env(**options: Any) -> int:
    """Audit environments: a dump of env, nccl.conf, a pod's YAML, a Ray runtime_env, a Slurm
    script, a .deepspeed_env, or what a log echoes; - for stdin; ray:http://HEAD:8265/ID for the
    runtime_env of a job.

    Several files are the ranks of one job: what differs between them is a finding. An inventory
    tells the NICs that the values are held against.
    """
    from commcheck.offline import env as command

    return command(**options)


@analyze.command(short_help="A job that hangs: flight-recorder dumps and RAS reports.")
@_TEXTS
@click.option("--frames", is_flag=True, help="Show the user's file and line of each collective.")
@STRICT
@together(*WHERE)
def hang(**options: Any) -> int:
    """Find the first collective that diverges, and the rank that is missing.

    PATH is a PyTorch flight-recorder dump of one rank (pickle or JSON, read without running
    anything in it), a folder of them, a saved RAS report, or - for stdin. Give those of all ranks.
    """
    from commcheck.offline import hang as command

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
    "--gpus",
    type=click.IntRange(1),
    metavar="N",
    help="GPUs a host, where not all took part: they share the NICs.",
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
@BUSBW
@click.option(
    "--alpha",
    "alpha_us",
    type=_POSITIVE,
    metavar="US",
    help="Latency that a sweep measured, to tell small collectives from a slow wire.",
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

    PATH is a .json or .json.gz, or a folder of them, also as torch_npu (*_ascend_pt), MindSpore
    (*_ascend_ms) and msprof (PROF_*) leave it. One rank is enough to see exposed communication;
    late ranks show only beside the others.
    """
    from commcheck.offline import trace as command

    return command(**options)


@analyze.command(short_help="A Prometheus server: are jobs bound by communication?")
@click.option(
    "--url",
    default="",
    envvar="COMMCHECK_PROMETHEUS_URL",
    show_envvar=True,
    metavar="URL",
    help="Prometheus, Thanos, Mimir or VictoriaMetrics, with the path before /api/v1.  "
    "[default: commcheck_prometheus_url of the inventory]",
)
@click.option("--hosts", "names", default="", metavar="NAMES", help="gpu-[01:16],gpu-20")
@INVENTORY
@LIMIT
@click.option(
    "--selector",
    default="",
    metavar="MATCHERS",
    help="Labels that tell the fleet or the job's GPUs: 'cluster=\"a\"'.",
)
@STRICT
@together(*WHERE)
def metrics(**options: Any) -> int:
    """Judge what monitoring knows of the last half hour, and of NICs and GPUs over the last day.

    Read are the series of dcgm-exporter, node_exporter (infiniband) and npu-exporter. A token or a
    password is taken from COMMCHECK_PROMETHEUS_TOKEN, or _USER and _PASSWORD; a tenant from
    _TENANT; certificates from _CA, _CERT and _KEY.
    """
    from commcheck.offline import metrics as command

    return command(**options)


@analyze.command(short_help="Settings of DDP, FSDP, DeepSpeed, Megatron: buckets, overlap, ZeRO.")
@_FILES
@click.option(
    "--device", default="", metavar="NAME", help="Accelerator, as nvidia-smi names it, for the MFU."
)
@STRICT
@together(*WHERE)
def config(**options: Any) -> int:
    """Judge the settings of a training job: ds_config.json, accelerate YAML, launch scripts,
    command lines, Python calls; a log of DeepSpeed's flops profiler gives the MFU.
    """
    from commcheck.offline import config as command

    return command(**options)


@analyze.command(short_help="The bucket size to set, and what it will bring.")
@_FILES
@click.option(
    "--framework",
    type=click.Choice(["ddp", "deepspeed", "megatron"]),
    help="Whose unit the answer has: MiB, or elements. Else the trace's, or ddp.",
)
@click.option("--current", type=_POSITIVE, metavar="SIZE", help="The size in force, in that unit.")
@click.option("--alpha", "alpha_us", type=_POSITIVE, metavar="US", help="Latency, without a sweep.")
@click.option(
    "--busbw", "busbw_gbytes", type=_POSITIVE, metavar="GBYTES", help="busbw, without a sweep."
)
@click.option("--ranks", type=click.IntRange(2), metavar="N", help="Data-parallel size.")
@click.option(
    "--element-bytes", type=click.Choice(["1", "2", "4"]), help="Of a gradient on the wire."
)
@click.option(
    "--free-gbytes", type=_POSITIVE, metavar="GBYTES", help="Memory that buckets may take."
)
@click.option(
    "--launch",
    "launch_us",
    type=click.FloatRange(0),
    default=0.0,
    metavar="US",
    help="Host time of one launch.",
)
@click.option(
    "--slowdown",
    type=click.FloatRange(0, 1),
    default=0.0,
    metavar="SHARE",
    help="How much slower computing is beside a collective: 0.1 is a tenth.",
)
@STRICT
@together(*WHERE)
def bucket(**options: Any) -> int:
    """Predict step time and exposed communication over bucket sizes, and advise one.

    PATH is a trace or a model description (when each gradient is ready, and its size), and the
    output of a sweep (what the network takes for a size), or --alpha and --busbw instead. Where a
    trace tells no sizes (gloo, torch before 2.1), also DDP's _get_ddp_logging_data() as JSON.
    """
    from commcheck.offline import bucket as command

    return command(**options)
