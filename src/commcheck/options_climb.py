"""The options of what climbs: which checks and hosts, how far, and how hosts are reached."""

from __future__ import annotations

from pathlib import Path
from typing import Final

import click

from commcheck import complete
from commcheck.options import (
    BASELINE,
    CHECK_FOLDERS,
    DRAIN,
    LIMIT,
    QUIETLY,
    STRICT,
    WHERE,
    a_path,
    not_empty,
)

_Named = Path | tuple[Path, ...] | None


def _readable(ctx: click.Context, param: click.Parameter, given: _Named) -> _Named:
    """What the SSH library will read later, on behalf of every host, can be read at all."""
    from commcheck.files import opened

    paths = given if isinstance(given, tuple) else (given,) if given else ()
    for path in () if ctx.resilient_parsing else paths:
        try:
            opened(path).close()
        except OSError as error:
            if isinstance(error, FileNotFoundError) and param.name == "known_hosts":
                continue  # accept-new makes it
            # The name last: what follows "deploy_key:" is masked as a secret's value.
            raise click.BadParameter(f"cannot be read, {error.strerror}: {path}") from None
    return given


def _shard(_ctx: click.Context, _param: click.Parameter, text: str) -> tuple[int, int] | None:
    if not text:
        return None
    number, slash, count = text.partition("/")
    if not (slash and number.isdecimal() and count.isdecimal() and 1 <= int(number) <= int(count)):
        raise click.BadParameter(f"{text!r} is not I/N with I from 1 to N, as in 2/3")
    return int(number), int(count)


PERMISSIONS: Final = ("load", "write", "debug-pod")


def _allow(_ctx: click.Context, _param: click.Parameter, text: str) -> str:
    words = [word.strip() for word in text.split(",") if word.strip()]
    for word in words:
        if word not in PERMISSIONS:
            raise click.BadParameter(f"{word!r} is none of {', '.join(PERMISSIONS)}")
    return ",".join(words)


CHOICE: Final = (
    click.argument(
        "playbook",
        required=False,
        type=a_path(),
        shell_complete=complete.completing(complete.playbooks, files=True),
    ),
    LIMIT,
    click.option(
        "-t",
        "--check-id",
        "only",
        multiple=True,
        metavar="GLOB",
        help="Only these checks.",
        shell_complete=complete.completing(complete.checks),
    ),
    click.option(
        "--skip",
        multiple=True,
        metavar="GLOB",
        help="Not these checks.",
        shell_complete=complete.completing(complete.checks),
    ),
    CHECK_FOLDERS,
    click.option(
        "--waivers",
        type=a_path(),
        multiple=True,
        metavar="FILE",
        help="Known faults, with a date.",
    ),
    STRICT,
    BASELINE,
)
"""Which checks are asked of which hosts, and what they are compared with."""

CLIMB: Final = (
    *CHOICE,
    click.option(
        "--resume",
        default="",
        metavar="RUN",
        callback=not_empty,
        help="Go on where a killed run ended; hosts that had ended are not asked again.",
        shell_complete=complete.completing(complete.runs),
    ),
    click.option(
        "--again",
        default="",
        metavar="RUN",
        callback=not_empty,
        help="Ask only the hosts that did not pass in that run, and say what was fixed.",
        shell_complete=complete.completing(complete.runs),
    ),
    click.option(
        "--shard",
        default="",
        callback=_shard,
        metavar="I/N",
        help="Only every N-th host, from the I-th on; commcheck merge makes one run of them.",
    ),
    click.option(
        "-f",
        "--forks",
        type=click.IntRange(1, 512),
        default=64,
        envvar="COMMCHECK_FORKS",
        show_envvar=True,
        show_default=True,
        help="Hosts at a time.",
    ),
    click.option(
        "-C", "--dry-run", "--check", is_flag=True, help="Say what would run; contact nobody."
    ),
    click.option(
        "--allow",
        default="",
        callback=_allow,
        shell_complete=complete.in_pattern(lambda _ctx: PERMISSIONS),
        metavar="load,write,debug-pod",
        help="What checks may do to a host beyond looking, where the playbook allows it too; "
        "debug-pod: look at nodes of Kubernetes through a privileged pod.",
    ),
    *WHERE,
    DRAIN,
    *QUIETLY,
    click.option(
        "--connect-timeout",
        type=click.FloatRange(0.1),
        default=10.0,
        show_default=True,
        metavar="S",
    ),
    click.option(
        "--host-deadline",
        type=click.FloatRange(0.1),
        default=120.0,
        show_default=True,
        metavar="S",
        help="The most that one host may take.",
    ),
    click.option(
        "--deadline",
        type=click.FloatRange(0),
        default=0.0,
        metavar="S",
        help="The most that the run may take; reports are still written.  [default: no limit]",
    ),
)
"""What every command takes that climbs, on whatever hosts."""

REACH: Final = (
    click.option(
        "-u",
        "--user",
        default="",
        metavar="NAME",
        help="Remote user, where the inventory names none.",
    ),
    click.option(
        "--workers",
        type=click.IntRange(0, 64),
        default=0,
        show_default=True,
        envvar="COMMCHECK_WORKERS",
        help="Processes that share the hosts; 0: one for each 150, on at most half of the cores.",
    ),
    click.option(
        "--executor",
        default="",
        metavar="NAME",
        help="Who visits the hosts instead of this machine: dask://SCHEDULER:8786, dask+tls://..., "
        "or MODULE:FACTORY of a concurrent.futures.Executor.",
    ),
    click.option(
        "--key-file",
        type=a_path(),
        multiple=True,
        callback=_readable,
        metavar="FILE",
        help="Private key.",
    ),
    click.option("--agent", is_flag=True, help="Offer the keys of the SSH agent."),
    click.option(
        "-b", "--become", is_flag=True, help="Run as root on the hosts where sudo -n may."
    ),
    click.option(
        "--host-keys",
        type=click.Choice(["strict", "accept-new", "pinned", "insecure"]),
        help="How host keys are proven.  [default: strict]",
    ),
    click.option("--known-hosts", type=a_path(), multiple=True, callback=_readable, metavar="FILE"),
    click.option(
        "--ssh-config",
        type=a_path(),
        callback=_readable,
        metavar="FILE",
        help="Instead of ~/.ssh/config.",
    ),
)
"""How real hosts are reached."""
