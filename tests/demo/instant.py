"""A climb on simulated hosts without SSH and without a process for each tool: many in a second.

What a host has is found by the real runner, what its tools say lies rendered in the host's folder,
and files are read by the real grep, cat and find.
"""

from __future__ import annotations

import contextlib
import io
import subprocess
import time
from collections.abc import Mapping, Sequence
from contextlib import nullcontext
from pathlib import Path

from commcheck import commands
from commcheck.cli import main
from commcheck.collect.base import Ask, Frame, Frames, Request, Sink
from commcheck.collect.local import LocalVisitor
from commcheck.collect.session import Session
from commcheck.demo.command import PLAIN, command_words, gpu_queries
from commcheck.demo.fleet import INVENTORY, Fleet
from commcheck.demo.folder import TIME_PASSES
from commcheck.demo.pings import npu_ping
from commcheck.demo.state import HostState
from commcheck.errors import Unreachable
from commcheck.formats.hccn import SCRIPT
from commcheck.model import Host


def climb(states: Sequence[HostState], out: Path, *words: str) -> int:
    """Climb on the hosts; the run lies below ``out``, JUnit files in ``out/junit``. The exit code.

    The options are those of ``commcheck demo``, whatever it has; ``words`` are more of them.
    """
    given = ["--out", str(out), "--junit", str(out / "junit"), "--format", "json", "--forks", "4"]
    context = main.commands["demo"].make_context("demo", [*given, *words])
    options = dict(context.params)
    for name in ("hosts", "faults", "personas", "connect_timeout", "host_deadline"):
        del options[name]
    queries = gpu_queries(command_words(options["check_folders"]))
    with Fleet(states, queries) as fleet, contextlib.redirect_stdout(io.StringIO()):
        visitor = InstantVisitor(fleet)
        return commands.climb(
            inventory=(INVENTORY,),
            inventory_from=fleet.folder,
            visitors=lambda *_: nullcontext(lambda _host: visitor),
            reach={"simulated": "yes"},
            host_deadline_s=60.0,
            sources={},
            **options,
        )


class InstantVisitor:
    """Answers for the hosts of a fleet."""

    def __init__(self, fleet: Fleet) -> None:
        self._fleet = fleet

    def visit(self, host: Host, ask: Ask, sink: Sink) -> None:
        """See ``Visitor``."""
        root = self._fleet.root(host.name)
        if not root.exists():  # it is down, and nothing of it was rendered
            raise Unreachable("tcp-refused", "nothing listens")
        found = Frames()
        LocalVisitor(lambda host: Session(f"instant.{host.name}", sysfs_root=str(root))).visit(
            host, lambda _: (), found
        )
        sink(found[0])
        phase = "start"
        for request in ask(found[0]):
            if phase == "start" != request.at:
                subprocess.run([root.parent / "bin" / TIME_PASSES], check=True)
            phase = request.at
            sink(answered(request, root, self._fleet.hosts))

    def stop(self) -> None:
        """See ``Visitor``: a visit ends by itself."""


def answered(request: Request, root: Path, hosts: Mapping[str, HostState]) -> Frame:
    """What the command says on the host of ``hosts`` that lies in ``root``."""
    argv = request.command.argv
    began = time.monotonic()
    if argv[2:3] == (SCRIPT,):
        out, err, rc = asked_of_npus(argv[4], argv[5:], root.parent / "answers", hosts)
    elif argv[0] in PLAIN:
        out, err, rc = read(argv, root)
    else:
        out, err, rc = said(argv, root.parent / "answers")
    return Frame(request.key, out, err, rc, began, time.monotonic())


def read(argv: Sequence[str], root: Path) -> tuple[bytes, bytes, int]:
    """What this machine's own program finds below ``root``."""
    ours = ("/sys/", "/proc/", "/etc/hccn.conf", "/usr/local/Ascend/")
    under = [f"{root}{word}" if word.startswith(ours) else word for word in argv]
    done = subprocess.run(under, capture_output=True, check=False)
    plain = [each.replace(str(root).encode(), b"") for each in (done.stdout, done.stderr)]
    return plain[0], plain[1], done.returncode


def asked_of_npus(
    ids: str, query: Sequence[str], answers: Path, hosts: Mapping[str, HostState]
) -> tuple[bytes, bytes, int]:
    """As the script asks ``hccn_tool``, which over SSH runs as it is."""
    told = []
    host = hosts[answers.parent.name]
    for npu in ids.split(":"):
        out, _, rc = said(("hccn_tool", "-i", npu, *query), answers)
        told.append(b"[npu %s rc %d]\n%s\n" % (npu.encode(), rc, out.rstrip(b"\n")))
        far = next((each.vnic for each in host.npus if str(each.number) != npu), None)
        if b"DOWN" in out and far:
            words = ("hccn_tool", "-i", npu, "-hccs_ping", "-g", "address", far)
            told.append(b"[hccs]\n%s" % npu_ping(host, hosts.values(), words[1:])[0].encode())
    return b"".join(told) + b"[end]\n", b"", 0


def said(argv: Sequence[str], answers: Path) -> tuple[bytes, bytes, int]:
    """What a fake tool would print: as its script in ``commcheck.demo.folder`` finds it."""
    path = answers / " ".join(argv).replace(",", "/")
    if not path.is_file():
        path = answers / argv[0]
    if not path.is_file():
        return b"", b"not known", 64
    err, rc = (path.with_name(f"{path.name}.{end}") for end in ("err", "rc"))
    return (
        path.read_bytes(),
        err.read_bytes() if err.exists() else b"",
        int(rc.read_text()) if rc.exists() else 0,
    )
