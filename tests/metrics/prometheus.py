"""A real Prometheus server on loopback, with the samples of an invented fleet: ``Prometheus``."""

from __future__ import annotations

import math
import shutil
import socket
import subprocess
import time
import urllib.error
import urllib.request
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Self

WHY_NOT = (
    ""
    if shutil.which("prometheus") and shutil.which("promtool")
    else "no prometheus (Debian: prometheus)"
)

Sample = tuple[float, float]  # seconds since 1970, value


@dataclass
class Metrics:
    """Series of exporters, as OpenMetrics text."""

    now: float
    lines: dict[str, list[str]] = field(default_factory=dict)

    def add(self, metric: str, labels: Mapping[str, str], samples: Iterable[Sample]) -> None:
        text = ",".join(f'{name}="{value}"' for name, value in labels.items())
        self.lines.setdefault(metric, []).extend(
            f"{metric}{{{text}}} {value!r} {when:.3f}" for when, value in samples
        )

    def times(self, minutes: float, every_s: float, until_min: float = 0.0) -> Iterator[float]:
        """Instants of the last ``minutes``, the newest ``until_min`` ago."""
        end = self.now - until_min * 60
        for n in range(math.ceil(minutes * 60 / every_s), -1, -1):
            yield end - n * every_s

    def text(self) -> str:
        parts = []
        for metric, lines in self.lines.items():
            parts.append(f"# TYPE {metric} unknown")
            parts += lines
        return "\n".join([*parts, "# EOF", ""])


@dataclass
class Prometheus:
    """A server with these metrics in its database; ``web`` is its web.config, if any.

    ``opener``: gets through to it where that takes a certificate and a password.
    """

    folder: Path
    metrics: Metrics
    web: str = ""
    scheme: str = "http"
    opener: urllib.request.OpenerDirector = field(default_factory=urllib.request.build_opener)
    port: int = 0
    process: subprocess.Popen[bytes] | None = None

    @property
    def url(self) -> str:
        return f"{self.scheme}://127.0.0.1:{self.port}"

    def __enter__(self) -> Self:
        data = self.folder / "data"
        source = self.folder / "metrics.om"
        source.write_text(self.metrics.text())
        done = subprocess.run(
            ["promtool", "tsdb", "create-blocks-from", "openmetrics", source, data],
            check=False,
            capture_output=True,
            text=True,
        )
        assert done.returncode == 0, done.stderr
        config = self.folder / "prometheus.yml"
        config.write_text("global: {scrape_interval: 1h}\n")
        words = [
            "prometheus",
            f"--config.file={config}",
            f"--storage.tsdb.path={data}",
            f"--web.listen-address=127.0.0.1:{self._free_port()}",
            "--log.level=warn",
            "--query.lookback-delta=5m",
        ]
        if self.web:
            (self.folder / "web.yml").write_text(self.web)
            words.append(f"--web.config.file={self.folder / 'web.yml'}")
        with (self.folder / "log").open("wb") as log:
            self.process = subprocess.Popen(words, stdout=log, stderr=log)
        self._await()
        return self

    def __exit__(self, *_: object) -> None:
        assert self.process is not None
        self.process.terminate()
        self.process.wait(10)

    def _free_port(self) -> int:
        with socket.socket() as one:
            one.bind(("127.0.0.1", 0))
            self.port = one.getsockname()[1]
        return self.port

    def _await(self) -> None:
        ends = time.monotonic() + 20
        while True:
            try:
                with self.opener.open(f"{self.url}/-/ready", timeout=1) as answer:
                    if answer.status == 200:
                        return
            except (urllib.error.URLError, OSError):
                pass
            assert time.monotonic() < ends, (self.folder / "log").read_text()
            time.sleep(0.05)
