"""The options of the command line, each declared once and shared by the commands that take it."""

from __future__ import annotations

import os
from collections.abc import Callable
from pathlib import Path
from typing import Any, Final

import click

from commcheck import complete


def a_path(**more: Any) -> click.Path:
    return click.Path(path_type=Path, **more)


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
            raise click.BadParameter(f"{path}: cannot be read: {error.strerror}") from None
    return given


def _configured(ctx: click.Context, _param: click.Parameter, path: Path | None) -> Path | None:
    """Lay the settings of the configuration files under the command's options."""
    if ctx.resilient_parsing:
        return path
    from commcheck import settings

    group = ctx.find_root().command
    commands = group.commands.values() if isinstance(group, click.Group) else ()
    known = {key for each in commands for param in each.params for key in settings.keys_of(param)}
    found = settings.settings(path, Path.cwd(), known)
    ctx.default_map, ctx.meta[_CONFIGURED] = settings.for_command(ctx.command, found)
    ctx.meta[_HOOKS] = found.get(settings.HOOKS)
    return path


_CONFIGURED: Final = "commcheck.settings"
_HOOKS: Final = "commcheck.hooks"


def _hooks(ctx: click.Context, _param: click.Parameter, names: tuple[str, ...]) -> tuple[Any, ...]:
    """The hooks that the configuration describes under these names."""
    if ctx.resilient_parsing or not names:
        return ()
    from commcheck.report.hooks import hook_of

    setting = ctx.meta.get(_HOOKS)
    if setting is None:
        return tuple(hook_of(name, None, Path(), "--notify") for name in names)
    return tuple(hook_of(name, setting.value, setting.folder, setting.place) for name in names)


def _language(_ctx: click.Context, _param: click.Parameter, name: str | None) -> str:
    """``zh`` where nothing is said and the user's locale is Chinese."""
    if name:
        return name
    told = (os.environ.get(each) for each in ("LC_ALL", "LC_MESSAGES", "LANG"))
    return "zh" if next(filter(None, told), "").lower().startswith("zh") else "en"


def sources(ctx: click.Context) -> dict[str, str]:
    """Every setting that is no default, and where it comes from."""
    from click.core import ParameterSource

    told = {
        ParameterSource.COMMANDLINE: "the command line",
        ParameterSource.ENVIRONMENT: "the environment",
    }
    found = {}
    for name, value in ctx.params.items():
        source = ctx.get_parameter_source(name)
        if source is ParameterSource.DEFAULT_MAP:
            found[f"{name} = {value}"] = ctx.meta[_CONFIGURED][name].place
        elif source in told and name != "dry_run":
            found[f"{name} = {value}"] = told[source]
    return found


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


CONFIG = click.option(
    "--config",
    type=a_path(),
    is_eager=True,
    expose_value=False,
    callback=_configured,
    envvar="COMMCHECK_CONFIG",
    show_envvar=True,
    metavar="FILE",
    help="Defaults for options, in TOML; stronger than commcheck.toml.",
)


def _drain(_ctx: click.Context, _param: click.Parameter, template: str) -> str:
    if not template:
        return ""
    from commcheck.report.drain import fault

    if wrong := fault(template):
        raise click.BadParameter(wrong)
    return template


DRAIN: Final = click.option(
    "--drain-command",
    default="",
    callback=_drain,
    metavar="TEMPLATE",
    help="Print, never run, this for the failing hosts of each cause: 'scontrol update "
    "nodename={hosts} state=drain reason={reason}'.",
)
CHECK_FOLDERS = click.option(
    "--checks",
    "check_folders",
    type=a_path(),
    multiple=True,
    metavar="DIR",
    help="A folder of checks that adds to, or overrides, those of ./checks and the bundled ones.",
)
INVENTORY = click.option(
    "-i",
    "--inventory",
    envvar="COMMCHECK_INVENTORY",
    show_envvar=True,
    multiple=True,
    metavar="PATH|a,b,",
    help="Ansible inventory: a file, a directory, a script, or names with a comma; slurm:PARTITION "
    "or slurm:gpu-[01-16]. Repeatable.",
)
LIMIT = click.option(
    "-l",
    "--limit",
    default="",
    envvar="COMMCHECK_LIMIT",
    show_envvar=True,
    metavar="PATTERN",
    help="Ansible pattern.",
    shell_complete=complete.in_pattern(complete.hosts),
)
OUT = click.option(
    "-o",
    "--out",
    type=a_path(),
    default=Path("reports"),
    envvar="COMMCHECK_REPORTS",
    show_envvar=True,
    show_default=True,
    metavar="DIR",
    help="Where run folders are written.",
)
FORMAT = click.option(
    "--format",
    "form",
    type=click.Choice(["text", "json", "hosts"]),
    default="text",
    envvar="COMMCHECK_FORMAT",
    show_envvar=True,
    help="What stdout carries; hosts: only those that fail, folded, for a scheduler to drain.",
)
TABLE = click.option(
    "--format",
    "form",
    type=click.Choice(["text", "json"]),
    default="text",
    help="What stdout carries.",
)
COLOR = click.option("--color", type=click.Choice(["auto", "always", "never"]), default="auto")


QUIETLY: Final = (
    click.option("--no-progress", is_flag=True, help="No display on stderr, only what changes."),
    click.option("-q", "--quiet", is_flag=True, help="Nothing on stderr but errors."),
)
STRICT = click.option("--strict", is_flag=True, help="Warnings fail.")
BASELINE = click.option(
    "--baseline",
    default="",
    metavar="RUN",
    help="Say what is different from this run; also a results.json, last, last-green.",
    shell_complete=complete.completing(complete.runs, files=True),
)
JUNIT = click.option("--junit", type=a_path(), metavar="DIR", help="JUnit files here, too.")
RUNBOOK = click.option(
    "--runbook-url",
    default="runbook.md",
    envvar="COMMCHECK_RUNBOOK_URL",
    show_envvar=True,
    metavar="URL",
    help="The runbook that reports link to.  [default: the copy in the run's folder]",
)
JUNIT_BY = click.option(
    "--junit-by",
    type=click.Choice(["host", "check", "layer"]),
    default="host",
    show_default=True,
    help="What a class of the JUnit files is; a change of it starts Jenkins' history anew.",
)
LANG = click.option(
    "--lang",
    type=click.Choice(["en", "zh"]),
    envvar="COMMCHECK_LANG",
    show_envvar=True,
    callback=_language,
    help="Language of the summary, and of report.html until its reader chooses.  "
    "[default: as LC_ALL or LANG say]",
)
NOTIFY = click.option(
    "--notify",
    multiple=True,
    envvar="COMMCHECK_NOTIFY",
    show_envvar=True,
    callback=_hooks,
    metavar="NAME",
    help="Tell the hook [hooks.NAME] of the configuration file about the run.",
)
WHERE: Final = (OUT, JUNIT, JUNIT_BY, FORMAT, COLOR, LANG, RUNBOOK, NOTIFY, CONFIG)
"""Where reports go, and what they look like."""

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
        help="Go on where a killed run ended; hosts that had ended are not asked again.",
        shell_complete=complete.completing(complete.runs),
    ),
    click.option(
        "--again",
        default="",
        metavar="RUN",
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
        type=click.IntRange(1, 64),
        default=1,
        show_default=True,
        envvar="COMMCHECK_WORKERS",
        help="Processes that share the hosts; worth it from some 300 hosts on.",
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

Command = Callable[..., int]


def together(*decorators: Callable[[Command], Command]) -> Callable[[Command], Command]:
    """Many decorators as one, in the order in which they would be written."""

    def decorate(command: Command) -> Command:
        for each in reversed(decorators):
            command = each(command)
        return command

    return decorate


RUN: Final = click.argument(
    "run_name",
    metavar="RUN",
    default="last",
    shell_complete=complete.completing(complete.runs, files=True),
)
