"""``docs/security.md``: each promise has its tests; and the tests of those that had none."""

from __future__ import annotations

import ast
import os
import re
import stat
import subprocess
import tomllib
from collections.abc import Iterator
from functools import cache
from pathlib import Path

import pytest
from packaging.requirements import Requirement
from packaging.utils import canonicalize_name

from commcheck.check import readings_of
from commcheck.collect.base import Frame
from commcheck.collect.hostkeys import HostKey, HostKeys, Mode, Wanted
from commcheck.collect.session import Session
from commcheck.discover import bundled_folder, discover
from commcheck.report.events import note_event
from commcheck.report.folder import RunFolder
from tests.collect.shells import command, script, visit
from tests.report.runs import incident

ROOT = Path(__file__).parents[1]
SOURCES = sorted((ROOT / "src").rglob("*.py"))
PAGE = (ROOT / "docs" / "security.md").read_text()
FOUND = discover(cwd=bundled_folder("checks"))
LOOKING = [one for one in FOUND if not one.check.effects]

# --- the page -----------------------------------------------------------------------------------

NODE = re.compile(r"`(tests/[\w/]+\.py)::(test_\w+)`")


def promises() -> Iterator[tuple[str, list[tuple[str, str]]]]:
    """Each list item: its sentence, and the tests behind it."""
    for item in re.findall(r"^- (.*(?:\n  .*)*)", PAGE, re.MULTILINE):
        yield " ".join(NODE.sub("", item).split()), NODE.findall(item)


def functions_of(path: Path) -> dict[str, list[str]]:
    """The test functions of a file, and what marks each."""
    return {
        each.name: [ast.unparse(mark) for mark in each.decorator_list]
        for each in ast.parse(path.read_text()).body
        if isinstance(each, ast.FunctionDef)
    }


def test_each_promise_is_one_sentence_with_tests_that_run() -> None:
    told = list(promises())
    assert len(told) > 50
    for sentence, nodes in told:
        assert re.fullmatch(r"[A-Z`](?:[^.]|\.(?=[\w/]))*\.", sentence), sentence
        assert nodes, f"nothing proves: {sentence}"
        for path, name in nodes:
            marks = functions_of(ROOT / path).get(name)
            assert marks is not None, f"there is no {path}::{name}"
            assert not any("xfail" in mark or "mark.skip(" in mark for mark in marks), name


def test_no_promise_stands_outside_the_list() -> None:
    """Prose between the headings is an introduction, or commands to run; no more."""
    rest = re.sub(r"^- .*(?:\n  .*)*", "", PAGE, flags=re.MULTILINE)
    paragraphs = [each for each in re.split(r"\n\s*\n", rest) if each and not each.startswith("#")]
    assert len(paragraphs) == 2, paragraphs


# --- reaching a host ----------------------------------------------------------------------------


def test_accepted_keys_are_kept_for_the_owner_alone(tmp_path: Path) -> None:
    file = tmp_path / "new" / "known_hosts"
    key = HostKey("ssh-ed25519", b"\0\0\0\x0bssh-ed25519" + bytes(36))
    HostKeys(lambda _note: None).check(
        "gpu-01:22", Wanted(Mode.ACCEPT_NEW, ("gpu-01",), (file,)), key
    )
    assert [stat.S_IMODE(each.stat().st_mode) for each in (file.parent, file)] == [0o700, 0o600]


NETWORK = frozenset(
    ["aiohttp", "asyncio", "fabric", "ftplib", "http", "httpx", "imaplib", "paramiko", "poplib",
     "requests", "smtplib", "socket", "socketserver", "ssl", "telnetlib", "urllib.request",
     "urllib3", "xmlrpc"]
)  # fmt: skip
REACHING = {
    "collect/dial.py",
    "collect/failures.py",
    "collect/gateways.py",
    "collect/ssh.py",
    "collect/sshconfig.py",  # the name of this machine
    "collect/wires.py",
    "demo/fleet.py",
    "demo/server.py",
    "jobs/step/on_host.py",  # a free port of the loopback
    "metrics/access.py",
    "metrics/api.py",
    "nccl/ray.py",  # the dashboard of a cluster that `analyze log` is given
    "report/hooks.py",
}


@cache
def imported(path: Path) -> set[str]:
    """Every module that a file imports, and each package above it."""
    names: set[str] = set()
    for node in ast.walk(ast.parse(path.read_text())):
        if isinstance(node, ast.Import):
            names |= {each.name for each in node.names}
        elif isinstance(node, ast.ImportFrom) and node.module:
            names |= {node.module, *(f"{node.module}.{each.name}" for each in node.names)}
    return {
        ".".join(parts[:count])
        for parts in (name.split(".") for name in names)
        for count in range(1, len(parts) + 1)
    }


def those_that_import(modules: frozenset[str]) -> set[str]:
    source = ROOT / "src" / "commcheck"
    return {str(path.relative_to(source)) for path in SOURCES if imported(path) & modules}


def test_only_these_modules_reach_a_network() -> None:
    assert those_that_import(NETWORK) == REACHING


STARTING = {
    "collect/kubectl.py",  # kubectl
    "collect/local.py",  # the runner, on a host that is this machine
    "collect/sshconfig.py",  # ssh -G
    "collect/wires.py",  # a ProxyCommand of the operator's
    "demo/server.py",
    "inventory/dynamic.py",  # a program that the operator names as an inventory
    "jobs/step/on_host.py",  # the training step, on its host
    "jobs/step/own.py",  # the operator's own command: commcheck step -- COMMAND
    "kube/call.py",  # kubectl
}


def test_only_these_modules_start_a_program() -> None:
    """Beside them there are Python's own worker processes."""
    assert those_that_import(frozenset({"subprocess", "pty"})) == STARTING
    calls = re.compile(r"\bos\.(?:exec|spawn|posix_spawn|popen|system)\w*\(")
    assert [path.name for path in SOURCES if calls.search(path.read_text())] == []


# --- on a host ----------------------------------------------------------------------------------

READ_ONLY = """#!/bin/sh
exec unshare -m sh -c '
  mount --make-rprivate /
  while read -r a b c d where rest; do
    mount -o remount,bind,ro "$where"
  done </proc/self/mountinfo 2>/dev/null
  exec sh "$@"
' sh "$@"
"""


def test_the_runner_works_where_nothing_can_be_written(tmp_path: Path) -> None:
    if subprocess.run(["unshare", "-m", "true"], check=False, capture_output=True).returncode:
        pytest.skip("private mount namespaces are not allowed here (unshare -m)")
    shell = tmp_path / "shell"
    shell.write_text(READ_ONLY)
    shell.chmod(0o755)
    folders = (tmp_path, "/tmp", "/var/tmp", "/dev/shm", "$HOME")
    tries = "; ".join(f"(: > {each}/x) 2>/dev/null && echo written" for each in folders)
    asked = {argv for _, argv in commands() if not any("{" in word for word in argv)}
    session = Session("read-only", deadline_s=60)
    tried, *frames = visit(
        str(shell), [script(tries), *(command(*argv) for argv in sorted(asked))], session
    )
    assert tried.stdout == b""
    assert len(frames) == len(asked) > 20
    assert [frame.key for frame in frames if b"ead-only file" in frame.stderr] == []


def commands() -> Iterator[tuple[str, tuple[str, ...]]]:
    """Every command of the checks that only look, with the check."""
    for one in LOOKING:
        for reading in readings_of(one.check.seen).values():
            for reader in reading.reader.readers:
                yield from ((one.id, each.argv) for each in reader.commands)


WRITES = re.compile(
    r"\b(rm|mv|cp|ln|tee|dd|touch|mkdir|mktemp|chmod|chown|truncate|sysctl|modprobe|reboot|kill)\s"
    r"|sed\s+(-\w+\s+)*-i"
)


def test_scripts_that_only_look_have_no_word_that_writes() -> None:
    scripts = {argv[2] for _, argv in commands() if argv[:2] == ("sh", "-c")}
    assert scripts
    for text in scripts:
        targets = set(re.findall(r">{1,2}\s*([^\s;|)&]+|&\d)", re.sub(r"'[^']*'", "''", text)))
        assert targets <= {"/dev/null", "&1", "&2"}, text
        assert not WRITES.search(text), text


def test_no_bundled_check_writes() -> None:
    assert {effect for one in FOUND for effect in one.check.effects} == {"load"}


ONLY_LOOKS = {
    "cat /proc/driver/nvidia/version",
    "ethtool",
    "ethtool -S",
    "ethtool -m",
    "fi_info -p efa",
    "lldpctl -f json",
    "mlnx_qos -i",
    "npu-smi info",
    "npu-smi info -t topo",
    "nvidia-smi -L",
    "nvidia-smi nvlink -e",
    "nvidia-smi nvlink -s",
    "nvidia-smi -q",
    "nvidia-smi topo -m",
}
"""First steps of remedies that checks ask, too."""


def without_places(words: str) -> str:
    return re.sub(r"\s*\{\w+\}", "", words).strip()


def test_no_remedy_that_changes_anything_is_run() -> None:
    asked = {without_places(" ".join(argv)) for _, argv in commands()}
    told = {
        without_places(remedy.command)
        for one in FOUND
        for cause in one.check.causes
        for remedy in cause.remedies
        if remedy.command
    }
    assert len(told) > 50
    assert told & asked <= ONLY_LOOKS


LOADS_OR_CHANGES = re.compile(
    r"\b(ib_\w+_(bw|lat)|roce_test|\w+_perf|dcgmi diag|stress\w*)\b|--allow load"
    r"|\b(modprobe|rmmod|make|setpci|reboot|swapoff|mount)\b|ip link set|sysctl -w|\btee\b"
    r"|systemctl (start|stop|restart|reload|enable|disable|mask|unmask|reboot)"
    r"|nvidia-smi (-r|-pl|-e|-c|-mig|-rgc|-lgc|-ac|-rac|--gpu-reset)\b"
)
"""Commands that put a load on a host, or leave it other than it was."""


def test_what_loads_or_changes_is_not_said_only_to_read() -> None:
    """Who pastes it on a host with a job must have been told."""
    told = {
        remedy.command
        for one in FOUND
        for cause in one.check.causes
        for remedy in cause.remedies
        if LOADS_OR_CHANGES.search(remedy.command) and "only reads" in remedy.precondition.en
    }
    assert not told


def test_only_pings_between_npus_load_as_root() -> None:
    jobs = [path for path in SOURCES if "jobs" in path.parts]
    assert {path.name for path in jobs if "root=True" in path.read_text()} == {"npu_reach.py"}


def test_the_folder_of_a_training_step_is_its_owners() -> None:
    """``mkdtemp`` makes it 0700; ``own.py`` runs where commcheck does."""
    made = {
        path.name
        for path in SOURCES
        if "jobs" in path.parts
        and re.search(r"\b(mkdtemp|mkdir|makedirs|TemporaryDirectory)\(", path.read_text())
    }
    assert made == {"on_host.py", "own.py"}


# --- on this machine ----------------------------------------------------------------------------


def test_a_run_folder_is_its_owners_whatever_the_umask(tmp_path: Path) -> None:
    before = os.umask(0)
    try:
        folder = RunFolder.create(tmp_path, "20261129T150405Z-7f3a")
        folder.event(note_event("begun"))
        folder.keep("gpu-01", Frame("once: true", b"", b"", 0, 0.0, 0.0))
        folder.render(incident())
        folder.keep_inventory({"hosts": []})
    finally:
        os.umask(before)
    kinds = {
        (path.is_dir(), stat.S_IMODE(path.stat().st_mode))
        for path in (folder.path, *folder.path.rglob("*"))
    }
    assert kinds == {(True, 0o700), (False, 0o600)}


def test_copies_for_a_ci_system_are_readable(tmp_path: Path) -> None:
    folder = RunFolder.create(tmp_path, "20261129T150405Z-7f3a")
    folder.render(incident())
    folder.copy_junit(tmp_path / "junit")
    modes = {stat.S_IMODE(path.stat().st_mode) for path in (tmp_path / "junit").iterdir()}
    assert modes == {0o644}


# --- supply chain -------------------------------------------------------------------------------

CODE = {"eval", "exec", "compile", "__import__"}
OF_A_MODULE = {"exec_module", "system", "popen"}
MODULES = {"pickle", "marshal", "shelve"}
SUSPECT = re.compile(rf"(?<!re\.)\b({'|'.join(CODE | OF_A_MODULE | MODULES | {'shell='})})")


def test_text_is_never_run_as_code() -> None:
    found = set()
    for path in [*SOURCES, *sorted((ROOT / "checks").rglob("*.py"))]:
        text = path.read_text()
        for node in ast.walk(ast.parse(text)) if SUSPECT.search(text) else ():
            match node:
                case ast.Call(func=ast.Name(id=name)) if name in CODE:
                    found.add((path.name, name))
                case ast.Call(func=ast.Attribute(attr=name)) if name in OF_A_MODULE:
                    found.add((path.name, name))
                case ast.keyword(arg="shell"):
                    found.add((path.name, "shell"))
                case _:
                    pass
        found |= {(path.name, each) for each in MODULES & imported(path)}
    assert found == {
        ("discover.py", "exec_module"),  # check files
        ("flight.py", "pickle"),  # by an unpickler that knows no class
        ("wrapper.py", "exec_module"),  # the site's own sitecustomize, on its host
    }


def test_the_lock_pins_what_is_declared_with_hashes() -> None:
    lock = (ROOT / "tests" / "requirements.txt").read_text().replace("\\\n", " ")
    pins = {}
    for line in lock.splitlines():
        if line and not line.startswith(("#", " ")):
            assert "--hash=sha256:" in line, line
            requirement = Requirement(line.partition(" --hash")[0])
            (pin,) = requirement.specifier
            assert pin.operator == "=="
            pins[canonicalize_name(requirement.name)] = pin.version
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
    for text in [*project["dependencies"], *project["optional-dependencies"]["test"]]:
        wanted = Requirement(text)
        version = pins.get(canonicalize_name(wanted.name))
        assert version is not None, f"{text} is not pinned: make lock"
        assert version in wanted.specifier, f"{text} is pinned to {version}: make lock"
