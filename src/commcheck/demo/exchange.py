"""The network between simulated hosts: programs on any of them ask it, through a named pipe.

A fake launcher cannot answer from its own host's folder alone: what it prints follows from all
hosts that take part. It writes its words into the fleet's pipe and reads the answer from its own.
"""

from __future__ import annotations

import contextlib
import errno
import json
import os
import threading
import time
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any, Final

from commcheck.demo.parts import File
from commcheck.demo.state import HostState
from commcheck.demo.sysfs.counters import entries as counters
from commcheck.demo.traffic import RUN_S, answer

PIPE: Final = ".exchange"
_APART: Final = "\x1f"
_END: Final = b"\n"
_PATIENCE_S: Final = 5.0
_MEET_S: Final = 30.0

ASKER: Final = r"""#!/bin/sh
# Asks the fleet's network and prints what it answers. One write, so that no two run together.
host=${0%/bin/*}
a=$(printf '\037')
words="$host$a$$$a$NCCL_IB_HCA$a$NCCL_TESTS_SPLIT$a$NCCL_DEBUG$a$NCCL_DEBUG_SUBSYS$a${0##*/}"
for word; do words=$words$a$word; done
reply=$host/home/.reply.$$
mkfifo "$reply" || exit 70
trap 'rm -f "$reply"' EXIT
printf '%s\n' "$words" >"$host/../.exchange"
{ read -r rc; cat; } <"$reply"
exit "$rc"
"""
"""Every program of ``traffic.TOOLS``."""


class Exchange:
    """Answers until it is closed. ``folder``: that of the fleet."""

    def __init__(self, folder: Path, states: Mapping[str, HostState]) -> None:
        """Start to listen."""
        self._folder = folder
        self._states = dict(states)
        self._lock = threading.Lock()
        self._meeting = threading.Condition()
        self._groups: dict[tuple[str, int], dict[int, str]] = {}  # host by node
        os.mkfifo(folder / PIPE, 0o600)
        # Open for both: a pipe that nobody writes to at the moment does not end.
        self._pipe = os.open(folder / PIPE, os.O_RDWR | os.O_CLOEXEC)
        self._thread = threading.Thread(target=self._listen, name="demo network", daemon=True)
        self._thread.start()

    def close(self) -> None:
        """Answer nobody any more."""
        with contextlib.suppress(OSError):
            os.write(self._pipe, _END)
        self._thread.join(_PATIENCE_S)
        os.close(self._pipe)

    def _listen(self) -> None:
        rest = b""
        while True:
            *lines, rest = (rest + os.read(self._pipe, 65536)).split(_END)
            for line in lines:
                if not line:
                    return
                threading.Thread(target=self._serve, args=(os.fsdecode(line),), daemon=True).start()

    def _serve(self, line: str) -> None:
        host, pid, hca, split, debug, subsystems, *argv = line.split(_APART)
        env = {
            "NCCL_IB_HCA": hca,
            "NCCL_TESTS_SPLIT": split,
            "NCCL_DEBUG": debug,
            "NCCL_DEBUG_SUBSYS": subsystems,
        }
        name = Path(host).name
        met = self._meet(name, json.loads(argv[1])["place"]) if argv[0] == "train_step" else ()
        with self._lock:
            said = answer(self._states, name, argv, env, met)
            for each in said.used:
                self._pass_time(each)
        self._reply(Path(host) / "home" / f".reply.{pid}", f"{said.rc}\n{said.text}")

    def _meet(self, name: str, place: Mapping[str, Any]) -> tuple[str, ...]:
        """The hosts of one training, once all have come; where some do not, only this one."""
        nodes, key = place["nodes"], (place["master"], place["port"])
        if nodes == 1:
            return (name,)
        with self._meeting:
            group = self._groups.setdefault(key, {})
            if len(group) == nodes:  # of an earlier training
                group = self._groups[key] = {}
            group[place["node"]] = name
            self._meeting.notify_all()
            self._meeting.wait_for(lambda: len(group) == nodes, _MEET_S)
        return tuple(group[node] for node in sorted(group))

    def _reply(self, path: Path, text: str) -> None:
        """Where the asker was killed, nobody reads: then it is given up."""
        end = time.monotonic() + _PATIENCE_S
        while time.monotonic() < end:
            try:
                descriptor = os.open(path, os.O_WRONLY | os.O_NONBLOCK | os.O_CLOEXEC)
            except OSError as error:
                if error.errno not in (errno.ENXIO, errno.ENOENT):
                    return
                time.sleep(0.002)
                continue
            os.set_blocking(descriptor, True)
            with os.fdopen(descriptor, "w") as out, contextlib.suppress(BrokenPipeError):
                out.write(text)
            return

    def _pass_time(self, host: str) -> None:
        """What the host counts goes on while it sends."""
        later = replace(self._states[host], second=self._states[host].second + RUN_S)
        self._states[host] = later
        for each in counters(later):
            if isinstance(each, File):
                path = self._folder / host / "root" / each.path
                if path.parent.name == "hw_counters":
                    path.write_text(each.text)
