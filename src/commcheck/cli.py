"""The command line: arguments in, exit code out. Everything heavy is imported by its command."""

from __future__ import annotations

import os
import sys
import traceback
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any, Final, NoReturn

import click

from commcheck import __version__
from commcheck.errors import CommcheckError, UsageError

USAGE, UNKNOWN, BUG = 2, 3, 70
"""Exit codes: usage, nothing failed but something is unknown, a bug (EX_SOFTWARE)."""


class _Group(click.Group):
    """Commands are not abbreviated, and listed in the order of a day's work."""

    def list_commands(self, _ctx: click.Context) -> list[str]:
        return list(self.commands)


@click.group(cls=_Group, context_settings={"help_option_names": ["-h", "--help"]})
@click.version_option(__version__, prog_name="commcheck")
def main() -> None:
    """Find where the communication of a training fleet breaks, from the wire upwards.

    Exit codes: 0 all judged and right, 1 something fails, 2 usage, 3 nothing fails but something
    could not be judged, 70 a bug, 130 and 143 interrupted.
    """


def _path(**more: Any) -> click.Path:
    return click.Path(path_type=Path, **more)


_CHECK_FOLDERS = click.option(
    "--checks",
    "check_folders",
    type=_path(),
    multiple=True,
    metavar="DIR",
    help="A folder of checks that adds to, or overrides, those of ./checks and the bundled ones.",
)
_INVENTORY = click.option(
    "-i",
    "--inventory",
    envvar="COMMCHECK_INVENTORY",
    multiple=True,
    metavar="PATH|a,b,",
    help="Ansible inventory: a file, a directory, a script, or names with a comma. Repeatable.",
)
_LIMIT = click.option(
    "-l",
    "--limit",
    default="",
    envvar="COMMCHECK_LIMIT",
    metavar="PATTERN",
    help="Ansible pattern.",
)
_OUT = click.option(
    "-o",
    "--out",
    type=_path(),
    default=Path("reports"),
    envvar="COMMCHECK_REPORTS",
    show_default=True,
    metavar="DIR",
    help="Where run folders are written.",
)
_FORMAT = click.option(
    "--format",
    "form",
    type=click.Choice(["text", "json"]),
    default="text",
    envvar="COMMCHECK_FORMAT",
    help="What stdout carries.",
)
_COLOR = click.option("--color", type=click.Choice(["auto", "always", "never"]), default="auto")


_CLIMB: Final = (
    click.argument("playbook", required=False, type=_path()),
    _LIMIT,
    click.option(
        "-t", "--check-id", "only", multiple=True, metavar="GLOB", help="Only these checks."
    ),
    click.option("--skip", multiple=True, metavar="GLOB", help="Not these checks."),
    _CHECK_FOLDERS,
    click.option(
        "-f",
        "--forks",
        type=click.IntRange(1, 512),
        default=64,
        envvar="COMMCHECK_FORKS",
        show_default=True,
        help="Hosts at a time.",
    ),
    click.option(
        "-C", "--dry-run", "--check", is_flag=True, help="Say what would run; contact nobody."
    ),
    click.option(
        "--waivers", type=_path(), multiple=True, metavar="FILE", help="Known faults, with a date."
    ),
    click.option(
        "--allow",
        type=click.Choice(["", "load", "write", "load,write"]),
        default="",
        help="What checks may do to a host beyond looking, where the playbook allows it too.",
    ),
    click.option("--strict", is_flag=True, help="Warnings fail."),
    _OUT,
    click.option("--junit", type=_path(), metavar="DIR", help="JUnit files here, too."),
    _FORMAT,
    _COLOR,
    click.option("--no-progress", is_flag=True, help="No display on stderr, only what changes."),
    click.option("-q", "--quiet", is_flag=True, help="Nothing on stderr but errors."),
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

_REACH: Final = (
    click.option(
        "-u",
        "--user",
        default="",
        metavar="NAME",
        help="Remote user, where the inventory names none.",
    ),
    click.option("--key-file", type=_path(), multiple=True, metavar="FILE", help="Private key."),
    click.option("--agent", is_flag=True, help="Offer the keys of the SSH agent."),
    click.option(
        "-b", "--become", is_flag=True, help="Run as root on the hosts where sudo -n may."
    ),
    click.option(
        "--host-keys",
        type=click.Choice(["strict", "accept-new", "pinned", "insecure"]),
        help="How host keys are proven.  [default: strict]",
    ),
    click.option("--known-hosts", type=_path(), multiple=True, metavar="FILE"),
    click.option("--ssh-config", type=_path(), metavar="FILE", help="Instead of ~/.ssh/config."),
)
"""How real hosts are reached."""

_Command = Callable[..., int]


def _all(*decorators: Callable[[_Command], _Command]) -> Callable[[_Command], _Command]:
    """Many decorators as one, in the order in which they would be written."""

    def decorate(command: _Command) -> _Command:
        for each in reversed(decorators):
            command = each(command)
        return command

    return decorate


@main.command(short_help="Climb: read every host, judge bottom-up, write the reports.")
@_INVENTORY
@_all(*_CLIMB, *_REACH)
def run(**options: Any) -> int:
    """Read every host of the inventory over SSH, judge bottom-up, write the reports.

    PLAYBOOK is a file; default: the bundled read-only climb.
    """
    from commcheck.commands import run as command

    return command(**options)


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
)
@_all(*_CLIMB)
def demo(**options: Any) -> int:
    """Climb on simulated hosts gpu-01, gpu-02, ...: H100, RoCE at 400 Gb/s. Needs no cluster.

    A real SSH server on this machine's loopback stands for each host, and the same probes really
    run, against tools that answer for the host's state. Without --fault the fleet is healthy.
    """
    from commcheck.demo.command import demo as command

    return command(**options)


@main.command("list", short_help="What exists, and what would run.")
@click.argument("what", type=click.Choice(["checks", "hosts", "tools", "faults"]), default="checks")
@_INVENTORY
@_LIMIT
@_CHECK_FOLDERS
@_FORMAT
def list_(**options: Any) -> int:
    """List checks, the hosts of an inventory, the tools that are read, or the faults of demo."""
    from commcheck.lookup import list_things as command

    return command(**options)


@main.command(short_help="What a check proves, or what a cause means.")
@click.argument("name", metavar="CHECK-ID|CAUSE")
@_CHECK_FOLDERS
def explain(**options: Any) -> int:
    """Say what a check proves and how, its thresholds, causes and remedies."""
    from commcheck.lookup import explain as command

    return command(**options)


@main.command(short_help="The facts read from one tool's output, as JSON.")
@click.argument("tool")
@click.argument("files", nargs=-1, required=True, metavar="FILE...")
@_CHECK_FOLDERS
def read(**options: Any) -> int:
    """Read a saved output of TOOL (`commcheck list tools`) and print the facts as JSON.

    FILE may be - for stdin. A tool that is asked several times takes one FILE for each command.
    """
    from commcheck.lookup import read as command

    return command(**options)


@main.command(short_help="Render the reports of a run again.")
@click.argument("run_name", metavar="RUN", default="last")
@_OUT
@click.option("--junit", type=_path(), metavar="DIR", help="JUnit files here, too.")
@_FORMAT
@_COLOR
def report(**options: Any) -> int:
    """Render the reports of RUN (an id, a unique beginning of one, `last`, or a path) again.

    Works on a run that was killed half-way: what was known then is shown, marked incomplete.
    """
    from commcheck.commands import report as command

    return command(**options)


@main.command(short_help="Errors in playbooks, waivers and checks, by file, line and column.")
@click.argument("paths", nargs=-1, type=_path(), metavar="[PATH]...")
@_CHECK_FOLDERS
def lint(**options: Any) -> int:
    """Check playbooks, waiver files and check files; a folder stands for what is in it.

    Default: ./playbooks and ./checks. Exit code 2 where there is an error.
    """
    from commcheck.lookup import lint as command

    return command(**options)


@main.command(short_help="The JSON Schema of a playbook or a waiver file, for editors.")
@click.argument("what", type=click.Choice(["playbook", "waivers"]))
@_CHECK_FOLDERS
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
    _never_die_of_encoding()
    code = _guarded(lambda: main.main(argv, prog_name="commcheck", standalone_mode=False))
    try:
        sys.stdout.flush()
    except BrokenPipeError:
        # Whoever read stdout has left. The reports are written and the exit code stands.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
    sys.exit(code)


def _guarded(call: Callable[[], Any]) -> int:
    try:
        code = call()
    except click.exceptions.Exit as error:
        return error.exit_code
    except click.ClickException as error:
        error.show()
        return USAGE
    except (click.Abort, KeyboardInterrupt):
        return 130
    except UsageError as error:
        for problem in error.problems:
            print(problem, file=sys.stderr)
        return USAGE
    except CommcheckError as error:
        print(f"error: {error}", file=sys.stderr)
        return UNKNOWN
    except Exception as error:  # noqa: BLE001 - the last resort: one line, and how to report it
        print(f"commcheck has a bug: {type(error).__name__}: {error}", file=sys.stderr)
        if os.environ.get("COMMCHECK_DEBUG"):
            traceback.print_exc()
        else:
            print("run it again with COMMCHECK_DEBUG=1 for the traceback", file=sys.stderr)
        return BUG
    return code if isinstance(code, int) else 0


def _never_die_of_encoding() -> None:
    # Jenkins agents often run with LANG=C, where a tick would raise UnicodeEncodeError.
    for stream in (sys.stdout, sys.stderr):
        reconfigure = getattr(stream, "reconfigure", None)
        if reconfigure is not None:
            reconfigure(errors="replace")
