"""The options of the command line, each declared once and shared by the commands that take it."""

from __future__ import annotations

import os
from collections.abc import Callable
from pathlib import Path
from typing import Any, Final

import click
from click.core import ParameterSource

from commcheck import complete


def a_path(**more: Any) -> click.Path:
    return click.Path(path_type=Path, **more)


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


BUSBW = click.option(
    "--busbw",
    metavar="[COLLECTIVE=]GBYTES",
    help="busbw in GB/s that a sweep among all ranks of the job measured, of all_reduce or of what "
    "is named (all_gather=350,reduce_scatter=340): the same collective is held against it.",
)
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
    "nodename={hosts} state=drain reason={reason}', 'kubectl cordon {names}'.",
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


def not_empty(ctx: click.Context, param: click.Parameter, word: str) -> str:
    """An empty word is what a shell makes of a list in which no host was left: never all hosts."""
    if not word and ctx.get_parameter_source(param.name or "") is ParameterSource.COMMANDLINE:
        raise click.BadParameter("it is empty; say which is meant, or leave the option out")
    return word


LIMIT = click.option(
    "-l",
    "--limit",
    default="",
    envvar="COMMCHECK_LIMIT",
    show_envvar=True,
    metavar="PATTERN",
    callback=not_empty,
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
    callback=not_empty,
    help="Say what is different from this run; also a results.json; last or last-green, if any.",
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
