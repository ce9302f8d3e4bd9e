"""Jobs of Ray by the dashboard's API: their logs, their environment, and what can go wrong."""

from __future__ import annotations

import contextlib
import json
import os
import re
import socket
import subprocess
import threading
import time
import urllib.request
from collections.abc import Callable, Iterator, Mapping
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any, Final
from urllib.parse import parse_qs, urlsplit

import pytest

from commcheck.errors import UsageError
from commcheck.nccl import ray
from commcheck.nccl.offline import analyse_logs, read_logs
from commcheck.nccl.offline_env import analyse_env

RECORDED: Final = Path(__file__).parents[1] / "recorded" / "ray"
LOGS: Final = Path(__file__).parents[1] / "recorded" / "nccl-logs"

Reply = tuple[int, bytes]
Answers = Callable[[str, Mapping[str, list[str]]], Reply]


def answer(path: str, asked: Mapping[str, list[str]]) -> Reply:
    """What the real dashboard said."""
    if path == "/api/v0/logs/file":
        name = "worker.out" if asked["filename"][0].endswith(".out") else "worker.err"
        assert asked["lines"] == ["-1"]
        return 200, (RECORDED / name).read_bytes()
    if path == "/api/v0/logs":
        assert asked["glob"] == ["worker-*-02000000-*"]
    name = {
        "/api/jobs/": "jobs.json",
        "/api/jobs/train-1": "job.json",
        "/api/jobs/train-1/logs": "job-logs.json",
        "/api/v0/nodes": "nodes.json",
        "/api/v0/logs": "logs.json",
    }.get(path, "")
    if name:
        return 200, (RECORDED / name).read_bytes()
    return 404, f"Job {path.rpartition('/')[2]} does not exist".encode()


class Dashboard(ThreadingHTTPServer):
    """Answers as it is told, and keeps the headers it was sent."""

    daemon_threads = True

    def __init__(self, answers: Answers) -> None:
        self.answers = answers
        self.tokens: set[str] = set()
        super().__init__(("127.0.0.1", 0), _Handler)

    def job(self, name: str = "train-1") -> str:
        return f"ray:http://127.0.0.1:{self.server_address[1]}/{name}"


class _Handler(BaseHTTPRequestHandler):
    server: Dashboard

    def do_GET(self) -> None:
        self.server.tokens.add(self.headers.get("Authorization", ""))
        parts = urlsplit(self.path)
        status, body = self.server.answers(parts.path, parse_qs(parts.query))
        self.send_response(status)
        if status == 302:
            self.send_header("Location", body.decode())
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, format: str, *args: object) -> None:
        """Nothing."""


@pytest.fixture
def serving() -> Iterator[Callable[[Answers], Dashboard]]:
    started: list[Dashboard] = []

    def start(answers: Answers = answer) -> Dashboard:
        started.append(Dashboard(answers))
        threading.Thread(target=started[-1].serve_forever, args=(0.02,), daemon=True).start()
        return started[-1]

    yield start
    for each in started:
        each.shutdown()
        each.server_close()


Serving = Callable[..., Dashboard]


def test_workers_are_read_and_of_the_driver_what_it_wrote_itself(serving: Serving) -> None:
    server = serving()
    driver, *workers = ray.Job.of(server.job(), {}).logs()
    text = b"".join(driver.chunks).decode()
    assert "Running entrypoint for job train-1" in text
    assert "NCCL" not in text  # copied there from workers, and folded
    assert len(workers) == 4
    assert "192.0.2.2 worker-" in workers[0].name
    lines = b"".join(b"".join(each.chunks) for each in workers).decode()
    assert lines.count("NCCL INFO Bootstrap : Using") == 2
    assert "watchdog says" in lines


def test_a_job_is_audited_as_files_are(serving: Serving) -> None:
    server = serving()
    analysis = analyse_logs([server.job()])
    (result,) = analysis.results
    (finding,) = result.findings
    # One of four ranks is in the recording: that much is known, and that Ray folded nothing.
    assert "the input holds 1 of 4 ranks" in finding.verdict.reason
    assert not any("de-duplication" in note for note in analysis.notes)


def test_where_workers_cannot_be_listed_the_driver_speaks_and_the_report_says_so(
    serving: Serving,
) -> None:
    def without_state(path: str, asked: Mapping[str, list[str]]) -> Reply:
        return (500, b"Server got itself in trouble") if "/v0/" in path else answer(path, asked)

    job = read_logs([serving(without_state).job()])
    assert list(job.unreadable.values()) == ["HTTP 500: Server got itself in trouble"]
    assert job.stats.nccl_lines > 10
    assert job.stats.repeated  # as the driver's log of this job has it


@pytest.mark.parametrize(("ended_ms", "told"), [(1, False), (None, True), (2**52, True)])
def test_a_node_that_left_while_the_job_ran_took_its_files_along(
    serving: Serving, ended_ms: int | None, told: bool
) -> None:
    nodes = json.loads((RECORDED / "nodes.json").read_text())
    dead = {"node_id": "ff", "node_ip": "192.0.2.9", "state": "DEAD", "end_time_ms": ended_ms}
    nodes["data"]["result"]["result"].append(dead)
    server = serving(
        lambda path, asked: (
            (200, json.dumps(nodes).encode()) if path == "/api/v0/nodes" else answer(path, asked)
        )
    )
    job = read_logs([server.job()])
    assert (list(job.unreadable.values()) != []) is told
    assert all("192.0.2.9 left the cluster" in why for why in job.unreadable.values())


def test_a_job_without_workers_is_its_driver(serving: Serving) -> None:
    def plain(path: str, asked: Mapping[str, list[str]]) -> Reply:
        status, body = answer(path, asked)
        told = json.loads(body)
        return status, json.dumps({**told, "job_id": None}).encode()

    (driver,) = ray.Job.of(serving(plain).job(), {}).logs()
    assert b"NCCL INFO" in b"".join(driver.chunks)


@pytest.mark.parametrize(("status", "live"), [("RUNNING", True), ("SUCCEEDED", False)])
def test_a_running_job_may_still_write(serving: Serving, status: str, live: bool) -> None:
    told = {**json.loads((RECORDED / "job.json").read_text()), "status": status}
    server = serving(
        lambda path, asked: (
            (200, json.dumps(told).encode()) if path.endswith("train-1") else answer(path, asked)
        )
    )
    assert ray.Job.of(server.job(), {}).is_live is live
    assert bool(read_logs([server.job()]).file_age_s) is live


def test_the_environment_is_the_runtime_env(serving: Serving) -> None:
    analysis = analyse_env([serving().job()])
    facts: Any = analysis.facts
    assert facts["environments"][0]["settings"]["NCCL_DEBUG"]["value"] == "INFO"
    assert facts["environments"][0]["kind"] == "ray"


def test_a_token_goes_to_the_dashboard_alone_and_is_never_shown(serving: Serving) -> None:
    other = serving()
    server = serving(lambda _path, _asked: (302, other.job().removeprefix("ray:").encode()))
    with pytest.raises(UsageError, match="HTTP 302") as moved:
        ray.Job.of(server.job(), {ray.TOKEN: "s3cret"})
    assert (server.tokens, other.tokens) == ({"Bearer s3cret"}, set())
    assert "s3cret" not in str(moved.value)
    server = serving(lambda _path, _asked: (401, b"Unauthorized"))
    with pytest.raises(UsageError) as caught:
        ray.Job.of(server.job(), {ray.TOKEN: "s3cret"})
    assert server.tokens == {"Bearer s3cret"}
    assert str(caught.value).endswith(f"HTTP 401: Unauthorized; set {ray.TOKEN} [ray]")
    with pytest.raises(UsageError, match="no header may"):
        ray.Job.of(server.job(), {ray.TOKEN: "a\nb"})


@pytest.mark.parametrize(
    ("name", "answers", "why"),
    [
        ("gone", answer, "no job 'gone'; there are train-1 (SUCCEEDED), raysubmit_"),
        ("", answer, "which job? there are train-1 (SUCCEEDED)"),
        ("x", lambda *_: (404, b"nginx"), "no job 'x'; the dashboard does not list its jobs"),
        ("x", lambda *_: (200, b"<html>"), "what answers there is no dashboard of Ray"),
        ("x", lambda *_: (200, b"[1]"), "what answers there is no dashboard of Ray"),
        ("x", lambda *_: (502, b"\n"), "HTTP 502: no reason"),
        ("x", lambda *_: (302, b""), "HTTP 302"),
    ],
)
def test_every_error_is_one_line(serving: Serving, name: str, answers: Answers, why: str) -> None:
    server = serving(answers)
    with pytest.raises(UsageError) as caught:
        read_logs([server.job(name)])
    (line,) = caught.value.problems
    assert line.startswith(f"{server.job(name)}: error: {why}")
    assert line.endswith("[ray]")


MADE_UP: Final[tuple[object, ...]] = (
    *([], "x", 5, None, {"data": {"result": []}}, {"logs": ["x"]}),
    {"data": {"result": {"result": [{"state": "ALIVE", "node_id": "a", "node_ip": "b"}]}}},
    {"submission_id": "\ud800", "job_id": "02000000", "runtime_env": "\ud800", "logs": "\ud800"},
)


@pytest.mark.parametrize("told", MADE_UP)
@pytest.mark.parametrize("where", ["/logs", "/api/v0/nodes", "/api/v0/logs", "/api/jobs/", ""])
def test_what_somebody_else_answers_is_read_or_told(
    serving: Serving, where: str, told: object
) -> None:
    def made_up(path: str, asked: Mapping[str, list[str]]) -> Reply:
        if not where or path.endswith(where):
            return 200, json.dumps(told).encode()
        return answer(path, asked)

    server = serving(made_up)
    for name in ("train-1", "gone"):
        try:
            job = ray.Job.of(server.job(name), {})
        except UsageError:
            continue
        job.environment()
        for each in job.logs():
            with contextlib.suppress(OSError):
                list(each.chunks)


@pytest.mark.parametrize(
    "source",
    [
        "ray:",
        "ray:head/x",
        "ray:ftp://head/x",
        "ray:http:///x",
        "ray:http://a:b@head/x",
        "ray:http://[::1/x",
    ],
)
def test_what_names_no_dashboard_is_refused(source: str) -> None:
    with pytest.raises(UsageError, match=r"a job of Ray is ray:http://HEAD:8265/ID"):
        ray.Job.of(source, {})


def test_silence_and_floods_have_an_end(serving: Serving, monkeypatch: pytest.MonkeyPatch) -> None:
    with socket.create_server(("127.0.0.1", 0)) as deaf:
        monkeypatch.setattr(ray, "SILENT_S", 0.2)
        with pytest.raises(UsageError, match="timed out"):
            ray.Job.of(f"ray:http://127.0.0.1:{deaf.getsockname()[1]}/x", {})
    monkeypatch.setattr(ray, "MOST_BYTES", 1000)
    job = read_logs([serving().job()])
    assert {re.sub(r".*longer than", "longer than", why) for why in job.unreadable.values()} == {
        "longer than 0 MiB"
    }


# --- a real Ray ---------------------------------------------------------------------------------

SCRIPT: Final = """
import ray
ray.init()
@ray.remote(num_cpus=0)
class Worker:
    def go(self, path):
        print(open(path, errors="replace").read(), flush=True)
ray.get([Worker.remote().go.remote(path) for path in {paths}])
"""
START: Final = """
import sys, ray
context = ray.init(num_cpus=1, include_dashboard=True, dashboard_host="127.0.0.1",
                   dashboard_port={port}, _temp_dir={folder!r}, object_store_memory=80_000_000)
print("ready", flush=True)
sys.stdin.read()
"""


@pytest.mark.slow
@pytest.mark.timeout(240)
def test_a_real_ray(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    python = os.environ.get("COMMCHECK_RAY_PYTHON", "")
    if not python:
        pytest.skip("COMMCHECK_RAY_PYTHON names no Python with ray[default]")
    with socket.create_server(("127.0.0.1", 0)) as free:
        port = free.getsockname()[1]
    paths = [str(LOGS / "12b-ray-worker-rank2.out")] * 2
    (tmp_path / "job.py").write_text(SCRIPT.format(paths=paths))
    # Ray's sockets have long names, and a path of one may have 107 bytes.
    folder = Path("/tmp") / f"ray-{os.getpid()}"
    token = "0123456789abcdef" * 4
    monkeypatch.setenv("RAY_AUTH_MODE", "token")
    monkeypatch.setenv(ray.TOKEN, token)
    env = {**os.environ, "RAY_USAGE_STATS_ENABLED": "0"}
    with (tmp_path / "head.log").open("wb") as log:
        head = subprocess.Popen(
            [python, "-c", START.format(port=port, folder=str(folder))],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=log,
            env=env,
        )
    try:
        assert head.stdout is not None
        assert head.stdout.readline() == b"ready\n", (tmp_path / "head.log").read_text()
        name = submit(port, f"{python} {tmp_path}/job.py", token)
        source = f"ray:http://127.0.0.1:{port}/{name}"
        job = read_logs([source])
        assert not job.unreadable
        assert not job.stats.repeated
        assert job.stats.nccl_lines == 52
        analysis = analyse_env([source])
        facts: Any = analysis.facts
        assert facts["environments"][0]["settings"]["NCCL_DEBUG"]["value"] == "INFO"
    finally:
        head.communicate(timeout=60)
        subprocess.run(["rm", "-rf", str(folder)], check=False)


def submit(port: int, entrypoint: str, token: str) -> str:
    """Run a job to its end; its name."""
    jobs = f"http://127.0.0.1:{port}/api/jobs/"
    job = {"entrypoint": entrypoint, "runtime_env": {"env_vars": {"NCCL_DEBUG": "INFO"}}}
    headers = {"Content-Type": "application/json", "Authorization": f"Bearer {token}"}

    def ask(url: str, data: bytes | None = None) -> Any:
        request = urllib.request.Request(url, data, headers)
        with urllib.request.urlopen(request, timeout=60) as reply:
            return json.load(reply)

    name = str(ask(jobs, json.dumps(job).encode())["submission_id"])
    ends = time.monotonic() + 120
    while time.monotonic() < ends:
        told = ask(jobs + name)
        if told["status"] == "SUCCEEDED":
            return name
        assert told["status"] != "FAILED", told
        time.sleep(0.5)
    raise AssertionError("the job did not end")
