"""Chromium, driven over its debugging pipe: what a page does when it is really opened."""

from __future__ import annotations

import contextlib
import json
import os
import select
import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any, Final

CHROMIUM: Final = next(filter(None, map(shutil.which, ("chromium", "google-chrome"))), None)

_FLAGS: Final = (
    "--headless",
    "--no-sandbox",
    "--disable-gpu",
    "--disable-quic",
    "--disable-dev-shm-usage",
    "--no-first-run",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
    "--remote-debugging-pipe",
)

# Chromium reads commands from descriptor 3 and answers on 4.
_TRAMPOLINE: Final = """
import fcntl, os, sys
high = [fcntl.fcntl(int(fd), fcntl.F_DUPFD, 20) for fd in sys.argv[1:3]]
for low, fd in zip((3, 4), high):
    os.dup2(fd, low, inheritable=True)
os.execv(sys.argv[3], sys.argv[3:])
"""


class Browser:
    """One page of a headless Chromium. ``events`` holds what the page did, as it came."""

    def __init__(self, profile: Path) -> None:
        assert CHROMIUM is not None
        child_reads, self._write = os.pipe()
        self._read, child_writes = os.pipe()
        self._process = subprocess.Popen(
            [
                *(sys.executable, "-c", _TRAMPOLINE, str(child_reads), str(child_writes)),
                *(CHROMIUM, *_FLAGS, f"--user-data-dir={profile}", "about:blank"),
            ],
            pass_fds=(child_reads, child_writes),
            stdin=subprocess.DEVNULL,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
            start_new_session=True,
        )
        os.close(child_reads)
        os.close(child_writes)
        self._buffer = b""
        self._number = 0
        self._session = ""
        self.events: list[dict[str, Any]] = []
        targets = self.ask("Target.getTargets")["targetInfos"]
        page = next(target for target in targets if target["type"] == "page")["targetId"]
        self._session = self.ask("Target.attachToTarget", targetId=page, flatten=True)["sessionId"]
        for domain in ("Page", "Runtime", "Log", "Network"):
            self.ask(f"{domain}.enable")
        # A blocked style or script is told of here only.
        self.ask("Audits.enable")

    def ask(self, method: str, **params: Any) -> dict[str, Any]:
        """One command of the DevTools protocol, and its answer."""
        self._number += 1
        message: dict[str, Any] = {"id": self._number, "method": method, "params": params}
        if self._session:
            message["sessionId"] = self._session
        os.write(self._write, json.dumps(message).encode() + b"\0")
        while True:
            answer = self._next()
            if answer.get("id") == self._number:
                assert "error" not in answer, f"{method}: {answer['error']}"
                return dict(answer["result"])

    def open(self, url: str, *, settle_s: float = 0.5) -> float:
        """Load a page, give it time to misbehave; seconds until its load event."""
        self.events.clear()
        started = time.monotonic()
        self.ask("Page.navigate", url=url)
        while not any(event["method"] == "Page.loadEventFired" for event in self.events):
            self._next()
        seconds = time.monotonic() - started
        deadline = time.monotonic() + settle_s
        while (left := deadline - time.monotonic()) > 0:
            self._next(left)
        return seconds

    def value(self, expression: str) -> Any:
        """What a JavaScript expression is in the page; None for what is undefined."""
        answer = self.ask("Runtime.evaluate", expression=expression, returnByValue=True)
        return answer["result"].get("value")

    def awaited(self, expression: str) -> Any:
        """What the promise of a JavaScript expression becomes."""
        answer = self.ask(
            "Runtime.evaluate", expression=expression, awaitPromise=True, returnByValue=True
        )
        assert "exceptionDetails" not in answer, answer["exceptionDetails"]
        return answer["result"].get("value")

    def of(self, *methods: str) -> list[dict[str, Any]]:
        """The parameters of the events of these kinds."""
        return [event["params"] for event in self.events if event["method"] in methods]

    def look(self, width: int, *, scheme: str = "light") -> None:
        """Give the window a width and a colour scheme."""
        self.ask(
            "Emulation.setDeviceMetricsOverride",
            width=width,
            height=800,
            deviceScaleFactor=1,
            mobile=False,
        )
        self.ask(
            "Emulation.setEmulatedMedia",
            features=[{"name": "prefers-color-scheme", "value": scheme}],
        )

    def _next(self, timeout_s: float = 30.0) -> dict[str, Any]:
        while b"\0" not in self._buffer:
            ready, _, _ = select.select([self._read], [], [], timeout_s)
            if not ready:
                if timeout_s < 30.0:
                    return {}
                raise TimeoutError("Chromium does not answer")
            data = os.read(self._read, 1 << 16)
            if not data:
                raise EOFError("Chromium ended")
            self._buffer += data
        line, _, self._buffer = self._buffer.partition(b"\0")
        message: dict[str, Any] = json.loads(line)
        if "method" in message:
            self.events.append(message)
            if message["method"] == "Page.javascriptDialogOpening":
                self._answer_dialog()
        return message

    def _answer_dialog(self) -> None:
        """A dialog stops the page until it is answered; its event is kept."""
        self._number += 1
        message = {"id": self._number, "method": "Page.handleJavaScriptDialog"}
        message |= {"params": {"accept": False}, "sessionId": self._session}
        os.write(self._write, json.dumps(message).encode() + b"\0")

    def close(self) -> None:
        """End Chromium and all its children."""
        with contextlib.suppress(ProcessLookupError):
            os.killpg(self._process.pid, signal.SIGKILL)
        self._process.wait()
        os.close(self._read)
        os.close(self._write)


@contextlib.contextmanager
def browser(profile: Path) -> Iterator[Browser]:
    """A Chromium of its own, ended afterwards."""
    started = Browser(profile)
    try:
        yield started
    finally:
        started.close()
