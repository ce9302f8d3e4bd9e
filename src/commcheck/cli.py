"""The command line: arguments in, exit code out. Everything heavy is imported by its command."""

from __future__ import annotations

import gc
import io
import os
import sys
from collections.abc import Callable, Sequence
from typing import Any, Final, NoReturn

import click

from commcheck import __version__, complete
from commcheck.cli_analyze import analyze
from commcheck.collector import put_off
from commcheck.console import columns, outlets
from commcheck.errors import CommcheckError, UsageError
from commcheck.lazy import regex
from commcheck.options import (
    BASELINE,
    BUSBW,
    CHECK_FOLDERS,
    COLOR,
    CONFIG,
    DRAIN,
    INVENTORY,
    LIMIT,
    OUT,
    QUIETLY,
    RUN,
    STRICT,
    TABLE,
    WHERE,
    a_path,
    sources,
    together,
)
from commcheck.options_climb import CHOICE, CLIMB, REACH

USAGE, UNKNOWN, BUG = 2, 3, 70
"""Exit codes: usage, nothing failed but something is unknown, a bug (EX_SOFTWARE)."""


class _Group(click.Group):
    """Commands are not abbreviated, and listed in the order of a day's work."""

    def list_commands(self, _ctx: click.Context) -> list[str]:
        return list(self.commands)


class _HelpFormatter(click.HelpFormatter):
    """As click's, which asks ``shutil`` for the width: that took a tenth of ``--help``."""

    def __init__(
        self, indent_increment: int = 2, width: int | None = None, max_width: int | None = None
    ) -> None:
        super().__init__(
            indent_increment, width or max(min(columns(80), max_width or 80) - 2, 50), max_width
        )


click.Context.formatter_class = _HelpFormatter


@click.group(cls=_Group, context_settings={"help_option_names": ["-h", "--help"]})
@click.version_option(__version__, prog_name="commcheck")
def main() -> None:
    """Find where the communication of a training fleet breaks, from the wire upwards.

    Options may have defaults in commcheck.toml, in this folder or one above it up to the
    repository's, in ~/.config/commcheck/config.toml, or in --config FILE: forks = 128. Where an
    option names a variable, that is stronger than the files, and the option is the strongest.

    Exit codes: 0 all judged and right, 1 something fails, 2 usage, 3 nothing fails but something
    could not be judged, 70 a bug, 130 and 143 interrupted.
    """


@main.command(short_help="Climb: read every host, judge bottom-up, write the reports.")
@INVENTORY
@together(*CLIMB, *REACH)
@click.pass_context
def run(ctx: click.Context, /, **options: Any) -> int:
    """Read every host of the inventory over SSH, judge bottom-up, write the reports.

    Pods and nodes of Kubernetes are read by kubectl exec, where the inventory says so.

    PLAYBOOK is a file, or one by its name from ./playbooks or the bundled ones: default, which
    climbs every day; incident, for a job that is slow or hangs now; maintenance, for hosts back
    from repair. All of them only look, unless --allow load is given.

    With --resume or --again what is not given is taken from that run: inventory, playbook, limit,
    checks, and how hosts are reached. RUN is an id, a unique beginning of one, a path, last, or
    last-green.
    """
    with put_off():
        from commcheck.commands import run as command

    return command(sources=sources(ctx), **options)


@main.command(short_help="The same climb on simulated hosts, with faults of your choice.")
@click.option(
    "--hosts", type=click.IntRange(1, 250), default=8, show_default=True, help="How many hosts."
)
@click.option(
    "--fault",
    "faults",
    multiple=True,
    metavar="NAME[@HOST]",
    help="Break a host (default: the second): commcheck list faults. Repeatable.",
    shell_complete=complete.completing(complete.faults),
)
@click.option(
    "--persona",
    "personas",
    multiple=True,
    metavar="NAME",
    help="What the hosts are: commcheck list personas. Repeatable: in turn.  [default: h100-roce]",
    shell_complete=complete.completing(complete.personas),
)
@together(*CLIMB)
@click.pass_context
def demo(ctx: click.Context, /, **options: Any) -> int:
    """Climb on simulated hosts gpu-01, gpu-02, ... of your choice. Needs no cluster.

    A real SSH server on this machine's loopback stands for each host, and the same probes really
    run, against tools that answer for the host's state. Without --fault the fleet is healthy.
    """
    from commcheck.demo.command import demo as command

    return command(sources=sources(ctx), **options)


main.add_command(analyze)


@main.command(short_help="Profile a few steps of your own training, and judge the traces.")
@click.argument("argv", nargs=-1, required=True, metavar="-- COMMAND...")
@click.option(
    "--steps", type=click.IntRange(1, 50), default=3, show_default=True, help="Profiled steps."
)
@click.option(
    "--skip-steps",
    type=click.IntRange(1),
    default=10,
    show_default=True,
    metavar="N",
    help="Optimizer steps to let pass before.",
)
@click.option(
    "--wait",
    "wait_s",
    type=click.FloatRange(1),
    default=1800.0,
    show_default=True,
    metavar="S",
    help="How long to wait for the traces.",
)
@click.option("--go-on", is_flag=True, help="Let the command run on once the traces are there.")
@click.option("--keep", type=a_path(), metavar="DIR", help="Keep the traces in this folder.")
@BUSBW
@STRICT
@together(*WHERE)
def step(**options: Any) -> int:
    """Start COMMAND, profile a few of its steps, end it, and judge the traces. Nothing is edited.

    COMMAND is what starts your training on this machine: torchrun or python with their words, any
    script around them. A hook that Python loads at its start counts the steps of the optimizer,
    runs torch.profiler around some of them on every rank, and leaves all else as it is.
    """
    from commcheck.offline import step as command

    return command(**options)


@main.command("list", short_help="What exists, and what would run.")
@click.argument(
    "what",
    type=click.Choice(["checks", "causes", "hosts", "plays", "tools", "faults", "personas"]),
    default="checks",
)
@INVENTORY
@LIMIT
@CHECK_FOLDERS
@TABLE
@CONFIG
def list_(**options: Any) -> int:
    """List checks, their causes, the hosts of an inventory, the plays of the playbooks here and of
    the bundled ones, the tools that are read, or the faults and the personas of demo.
    """
    from commcheck.lookup import list_things as command

    return command(**options)


@main.command(short_help="What a check proves, or what a cause means.")
@click.argument(
    "name",
    metavar="CHECK-ID|CAUSE",
    shell_complete=complete.completing(complete.checks_and_causes),
)
@CHECK_FOLDERS
def explain(**options: Any) -> int:
    """Say what a check proves and how, its thresholds, causes and remedies."""
    from commcheck.lookup import explain as command

    return command(**options)


@main.command(short_help="The facts read from one tool's output, as JSON.")
@click.argument("tool")
@click.argument("files", nargs=-1, required=True, metavar="FILE...")
@CHECK_FOLDERS
def read(**options: Any) -> int:
    """Read a saved output of TOOL (`commcheck list tools`) and print the facts as JSON.

    FILE may be - for stdin. A tool that is asked several times takes one FILE for each command.
    """
    from commcheck.lookup import read as command

    return command(**options)


@main.command(short_help="Render the reports of a run again.")
@RUN
@together(*WHERE, DRAIN)
def report(**options: Any) -> int:
    """Render the reports of RUN again: an id, a unique beginning of one, a path, last, last-green.

    Works on a run that was killed half-way: what was known then is shown, marked incomplete.
    """
    from commcheck.afterwards import report as command

    return command(**options)


@main.command(short_help="Judge a run again, with today's checks and limits; asks no host.")
@RUN
@INVENTORY
@together(*CHOICE, *WHERE, DRAIN, *QUIETLY)
def judge(**options: Any) -> int:
    """Judge what the hosts answered in RUN again, into a run of its own. No host is asked.

    Checks, limits and waivers are today's; inventory and playbook are those of RUN unless they
    are given. What was not recorded then is an error: not recorded.
    """
    from commcheck.afterwards import judge as command

    return command(**options)


@main.command(short_help="Make one run of the shards of a run; asks no host.")
@click.argument(
    "run_names",
    nargs=-1,
    required=True,
    metavar="RUN...",
    shell_complete=complete.completing(complete.runs, files=True),
)
@STRICT
@BASELINE
@together(*WHERE, DRAIN, *QUIETLY)
def merge(**options: Any) -> int:
    """Make one run of those of `run --shard 1/N` to `N/N`, judged over all their hosts.

    They must have asked the same of the same inventory, and every host of it must be in exactly
    one of them.
    """
    from commcheck.afterwards import merge as command

    return command(**options)


@main.command(short_help="What is different between two runs.")
@click.argument("old", metavar="OLD", shell_complete=complete.completing(complete.runs, files=True))
@click.argument(
    "new",
    metavar="NEW",
    default="last",
    shell_complete=complete.completing(complete.runs, files=True),
)
@OUT
@TABLE
@COLOR
@CONFIG
def diff(**options: Any) -> int:
    """Say what fails in NEW and did not in OLD, what was fixed, what moved.

    OLD and NEW are runs, or saved results.json files. Exit codes: 0 nothing is worse, 1 something
    newly fails, 3 nothing newly fails but something is newly unknown.
    """
    from commcheck.afterwards import diff as command

    return command(**options)


@main.command(short_help="Errors in playbooks, waivers and checks, by file, line and column.")
@click.argument("paths", nargs=-1, type=a_path(), metavar="[PATH]...")
@CHECK_FOLDERS
def lint(**options: Any) -> int:
    """Check playbooks, waiver files and check files; a folder stands for what is in it.

    Default: ./playbooks and ./checks. Exit code 2 where there is an error.
    """
    from commcheck.lookup import lint as command

    return command(**options)


@main.command(short_help="The JSON Schema of a playbook or a waiver file, for editors.")
@click.argument("what", type=click.Choice(["playbook", "waivers"]))
@CHECK_FOLDERS
def schema(**options: Any) -> int:
    """Print the JSON Schema (draft 7), with the check ids and thresholds that were found."""
    from commcheck.lookup import schema as command

    return command(**options)


@main.command(short_help="The completion script of a shell.")
@click.argument("shell", type=click.Choice(["bash", "zsh", "fish"]))
def completion(shell: str) -> None:
    """Print the script; for bash: source <(commcheck completion bash)."""
    from click.shell_completion import get_completion_class

    found = get_completion_class(shell)
    if found is not None:
        print(found(main, {}, "commcheck", "_COMMCHECK_COMPLETE").source())


# --- the one place where exceptions become exit codes -------------------------------------------


def entry(argv: Sequence[str] | None = None) -> NoReturn:
    """The console script."""
    with outlets() as (out, err):
        code = _guarded(lambda: main.main(argv, prog_name="commcheck", standalone_mode=False))
        out.flush()
        # A reader that has left has had what it wanted; a full disk took what a program waits for.
        if out.lost:
            told = f"stdout: {out.lost}; what was to be printed is not whole"
            print(f"commcheck: error: {told}", file=err)
            code = USAGE if code < USAGE or code == UNKNOWN else code
    gc.freeze()  # the interpreter's last search for cycles took a sixth of a run on one host
    sys.exit(code)


def _guarded(call: Callable[[], Any]) -> int:
    try:
        code = call()
    except click.exceptions.Exit as error:
        return error.exit_code
    except click.ClickException as error:
        shown = io.StringIO()
        error.show(shown)
        print(_shown(shown.getvalue().rstrip()), file=sys.stderr)
        return USAGE
    except (click.Abort, KeyboardInterrupt):
        return 130
    except UsageError as error:
        for problem in error.problems:
            print(_shown(problem), file=sys.stderr)
        return USAGE
    except CommcheckError as error:
        print(_shown(f"error: {error}"), file=sys.stderr)
        return UNKNOWN
    except (MemoryError, SystemError):  # the latter where even the exception found no memory
        print("error: this machine has no memory left for commcheck: ulimit -v", file=sys.stderr)
        return UNKNOWN
    except Exception as error:  # noqa: BLE001 - the last resort: one line, and how to report it
        print(f"commcheck has a bug: {type(error).__name__}: {error}", file=sys.stderr)
        if os.environ.get("COMMCHECK_DEBUG"):
            import traceback

            traceback.print_exc()
        else:
            print("run it again with COMMCHECK_DEBUG=1 for the traceback", file=sys.stderr)
        return BUG
    return code if isinstance(code, int) else 0


def _shown(told: str) -> str:
    """Names of files may come from anywhere: none of them steers a terminal, or a CI console."""
    from commcheck.report.cleaning import composed

    return "\n".join(
        composed(*(found.groups() if (found := _PLACED.fullmatch(line)) else (line,)), limit=4000)
        for line in told.split("\n")
    )


_PLACED: Final = regex(r"(.*?)((?::\d+){0,2}: (?:error|warning): )(.*)")
"""What is wrong with a file: its name, the place in it, the reason."""
