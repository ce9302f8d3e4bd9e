"""The commands of ``commcheck analyze``: files in, reports and an exit code out."""

from __future__ import annotations

import sys
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from datetime import UTC, datetime
from functools import partial
from pathlib import Path
from typing import Any

import click

from commcheck.analysis import Analysis, record_of
from commcheck.deliver import Delivery
from commcheck.errors import UsageError
from commcheck.inventory.load import load
from commcheck.model import Host
from commcheck.prepare import new_run_id
from commcheck.report import events
from commcheck.report.folder import RunFolder


def log(*, paths: tuple[str, ...], inventory: tuple[str, ...], processes: int, **where: Any) -> int:
    """Audit NCCL and HCCL logs."""
    from commcheck.nccl.offline import analyse_logs

    hosts = hosts_of(inventory)
    return _leave(
        "log",
        paths,
        lambda: analyse_logs(
            paths, hosts, stdin=sys.stdin.buffer, processes=processes, now_s=time.time()
        ),
        {"inventory": ", ".join(inventory)},
        **where,
    )


def env(*, paths: tuple[str, ...], inventory: tuple[str, ...], **where: Any) -> int:
    """Audit environments."""
    from commcheck.nccl.offline_env import analyse_env

    hosts = hosts_of(inventory)
    given = {"inventory": ", ".join(inventory)}
    work = partial(analyse_env, paths, hosts, stdin=sys.stdin.buffer)
    return _leave("env", paths, work, given, **where)


def hang(*, paths: tuple[str, ...], frames: bool, **where: Any) -> int:
    """Find who a hanging job waits for."""
    from commcheck.nccl.offline_hang import analyse_hang

    work = partial(analyse_hang, paths, stdin=sys.stdin.buffer, frames=frames)
    return _leave("hang", paths, work, {"frames": frames or None}, **where)


def sweep(
    *,
    paths: tuple[Path, ...],
    nic_gbits: float | None,
    rails: int | None,
    gpus: int | None,
    reference_gbytes: float | None,
    algorithm: str,
    collective: str | None,
    nranks: int | None,
    hosts: int | None,
    **where: Any,
) -> int:
    """Judge saved outputs of bandwidth tests."""
    from commcheck.jobs.offline import Told, analyse_sweeps

    told = Told(
        nic_gbits=nic_gbits,
        rails=rails,
        gpus=gpus,
        reference_gbytes=reference_gbytes,
        algorithm=algorithm,
        collective=collective,
        nranks=nranks,
        hosts=hosts,
    )
    given = {"nic_gbits": nic_gbits, "rails": rails, "gpus": gpus,
             "reference_gbytes": reference_gbytes, "algorithm": algorithm,
             "collective": collective, "ranks": nranks, "hosts": hosts}  # fmt: skip
    return _leave("sweep", paths, lambda: analyse_sweeps(paths, told), given, **where)


def trace(
    *,
    paths: tuple[Path, ...],
    before: tuple[Path, ...],
    busbw: str | None,
    alpha_us: float | None,
    kernels: tuple[str, ...],
    processes: int,
    **where: Any,
) -> int:
    """Analyse the traces of a training step, and what changed since others."""
    from commcheck.trace.change import analyse_change
    from commcheck.trace.offline import analyse_traces
    from commcheck.trace.rungs import Known
    from commcheck.trace.wire import busbw_told

    known = Known(busbw_told(busbw) if busbw else {}, alpha_us)

    def work() -> Analysis:
        with _bar() as watch:
            if before:
                return analyse_change(
                    before, paths, known=known, kernels=kernels, workers=processes, watch=watch
                )
            return analyse_traces(
                paths, known=known, kernels=kernels, workers=processes, watch=watch
            )

    given = {
        "before": ", ".join(map(str, before)),
        "busbw": busbw,
        "alpha_us": alpha_us,
        "kernels": ", ".join(kernels),
    }
    return _leave("trace", paths, work, given, **where)


def step(
    *,
    argv: tuple[str, ...],
    steps: int,
    skip_steps: int,
    wait_s: float,
    go_on: bool,
    keep: Path | None,
    busbw: str | None,
    **where: Any,
) -> int:
    """Profile a few steps of a command, and analyse its traces."""
    from commcheck.jobs.step.own import Wanted, analyse_own
    from commcheck.trace.rungs import Known
    from commcheck.trace.wire import busbw_told

    wanted = Wanted(steps, skip_steps, wait_s, go_on)
    given = {"steps": steps, "skip_steps": skip_steps, "busbw": busbw,
             "keep": keep}  # fmt: skip
    work = partial(
        analyse_own,
        argv,
        wanted,
        Known(busbw_told(busbw) if busbw else {}),
        keep,
        partial(click.echo, err=True),
    )
    return _leave("step", argv, work, given, **where)


def metrics(
    *,
    url: str,
    inventory: tuple[str, ...],
    names: str,
    limit: str,
    selector: str,
    **where: Any,
) -> int:
    """Judge what a Prometheus server knows of hosts."""
    from commcheck.inventory.patterns import select
    from commcheck.metrics.offline import analyse_metrics, hosts_named

    if not names and not inventory:
        raise UsageError("error: whose metrics? give --hosts gpu-[01:16], or -i FILE [metrics]")
    if names:
        hosts = hosts_named(names)
    else:
        loaded = load(inventory, cwd=Path.cwd())
        hosts = tuple(select(loaded, limit, cwd=Path.cwd())) if limit else loaded.hosts
    sources = [url] if url else list(inventory)
    given = {"hosts": names, "inventory": ", ".join(inventory), "limit": limit,
             "selector": selector}  # fmt: skip
    return _leave(
        "metrics",
        sources,
        lambda: analyse_metrics(url, hosts, selector=selector),
        given,
        **where,
    )


def config(*, paths: tuple[Path, ...], device: str, **where: Any) -> int:
    """Judge the settings of a training job."""
    from commcheck.frameworks.offline import analyse_config

    work = partial(analyse_config, paths, device=device)
    return _leave("config", paths, work, {"device": device}, **where)


def bucket(
    *,
    paths: tuple[Path, ...],
    framework: str | None,
    current: float | None,
    alpha_us: float | None,
    busbw_gbytes: float | None,
    ranks: int | None,
    element_bytes: str | None,
    free_gbytes: float | None,
    launch_us: float,
    slowdown: float,
    **where: Any,
) -> int:
    """Advise a bucket size."""
    from commcheck.bucket.offline import Given, analyse_bucket
    from commcheck.bucket.simulate import Costs

    given = Given(
        framework=framework or "",
        current=current,
        alpha_us=alpha_us,
        busbw_gbytes=busbw_gbytes,
        ranks=ranks,
        element_bytes=int(element_bytes) if element_bytes else None,
        free_bytes=free_gbytes * 1e9 if free_gbytes else None,
        costs=Costs(launch_us=launch_us, slowdown=slowdown),
    )
    told = {"framework": framework, "current": current, "alpha_us": alpha_us,
            "busbw_gbytes": busbw_gbytes, "ranks": ranks, "element_bytes": element_bytes,
            "free_gbytes": free_gbytes, "launch_us": launch_us or None,
            "slowdown": slowdown or None}  # fmt: skip
    return _leave("bucket", paths, partial(analyse_bucket, paths, given), told, **where)


@contextmanager
def _bar() -> Iterator[Callable[[int, int], None] | None]:
    """A progress bar for who sits before a terminal: of bytes read, of all there are."""
    if not sys.stderr.isatty():
        yield None
        return
    from rich.console import Console
    from rich.progress import BarColumn, DownloadColumn, Progress, TimeRemainingColumn

    columns = (BarColumn(), DownloadColumn(), TimeRemainingColumn())
    with Progress(*columns, console=Console(stderr=True), transient=True) as progress:
        task = progress.add_task("", total=None)
        yield lambda done, total: progress.update(task, completed=done, total=total)


def hosts_of(inventory: tuple[str, ...]) -> Mapping[str, Host] | None:
    """The hosts of an inventory by name; None where none was given."""
    if not inventory:
        return None
    return {host.name: host for host in load(inventory, cwd=Path.cwd()).hosts}


def _leave(
    what: str,
    sources: Sequence[str | Path],
    work: Callable[[], Analysis],
    given: Mapping[str, object],
    *,
    strict: bool,
    **where: Any,
) -> int:
    """Do the work and write its reports. ``given``: what the user told beside the files."""
    delivery = Delivery(**where)
    delivery.clear()
    started = datetime.now(UTC)
    analysis = work()  # bad input raises before anything is written
    record = record_of(
        analysis,
        what,
        [str(source) for source in sources],
        run_id=new_run_id(started),
        started=started,
        ended=datetime.now(UTC),
        settings={name: str(value) for name, value in given.items() if value not in (None, "")},
        strict=strict,
    )
    folder = RunFolder.create(delivery.out, record.info.run_id)
    for event in events.events_of(record):
        folder.event(event)
    delivery.deliver(record, folder)
    return record.exit_code
