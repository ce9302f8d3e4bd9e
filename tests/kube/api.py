"""A small stand-in for an API server and its kubelets: enough for a real ``kubectl``.

Pods are names: what is executed in one is executed here, by a real shell. Exec is WebSocket only,
``v5.channel.k8s.io``, as kubectl speaks it from 1.31 on. There is no kubelet, no scheduler and no
container: what those do is not proven by it. A tiny controller carries out Jobs and MPIJobs.
"""

from __future__ import annotations

import base64
import contextlib
import functools
import hashlib
import json
import os
import re
import shutil
import socket
import struct
import subprocess
import threading
import time
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any, Final, Self
from urllib.parse import parse_qs, urlsplit

import yaml

PROTOCOL: Final = "v5.channel.k8s.io"
_MAGIC: Final = "258EAFA5-E914-47DA-95CA-C5AB0DC85B11"  # RFC 6455
_STDIN, _STDOUT, _STDERR, _ERROR, _CLOSE = 0, 1, 2, 3, 255
_PLURALS: Final = {"pods": "Pod", "nodes": "Node", "jobs": "Job", "mpijobs": "MPIJob"}
_PATH: Final = re.compile(
    r"/apis?/(?P<api>v1|[a-z.]+/v\w+)(?:/namespaces/(?P<namespace>[^/]+))?"
    r"/(?P<kind>pods|nodes|jobs|mpijobs)(?:/(?P<name>[^/]+))?(?:/(?P<sub>exec|log))?"
)


@functools.cache
def why_no_kubectl() -> str:
    """Empty where a kubectl that speaks WebSocket is there; else the reason for a skip."""
    if shutil.which("kubectl") is None:
        return "no kubectl"
    words = ["kubectl", "version", "--client", "-o", "json"]
    done = subprocess.run(words, capture_output=True, text=True, check=False, timeout=60)
    match = re.search(r'"gitVersion": "v1\.(\d+)', done.stdout)
    return "" if match and int(match[1]) >= 31 else "kubectl speaks WebSocket from 1.31 on"


@dataclass
class Pod:
    """``bin`` is first on PATH of what is executed in it; ``shell`` False: it has no sh."""

    name: str
    namespace: str = "default"
    labels: Mapping[str, str] = field(default_factory=dict)
    node: str = "node-1"
    phase: str = "Running"
    containers: tuple[str, ...] = ("main",)
    bin: Path | None = None
    env: Mapping[str, str] = field(default_factory=dict)
    log: list[bytes] = field(default_factory=list)
    log_ends: threading.Event = field(default_factory=threading.Event)
    shell: bool = True
    inside: tuple[str, ...] = ()  # words in front of what is executed: namespaces, say

    @property
    def document(self) -> dict[str, Any]:
        status: dict[str, Any] = {"phase": self.phase}
        if self.phase == "Running":
            status["conditions"] = [{"type": "Ready", "status": "True"}]
        containers = [{"name": each, "image": "made"} for each in self.containers]
        return {
            "apiVersion": "v1",
            "kind": "Pod",
            "metadata": {
                "name": self.name,
                "namespace": self.namespace,
                "labels": dict(self.labels),
                "uid": f"uid-{self.name}",
            },
            "spec": {"nodeName": self.node, "containers": containers},
            "status": status,
        }


class Cluster:
    """The state, and the server. ``forbidden``: resources that nobody may use, as "pods/exec"."""

    def __init__(self, folder: Path, pods: Sequence[Pod] = (), nodes: Sequence[str] = ()) -> None:
        self.folder = folder
        self.pods = list(pods)
        self.nodes: dict[str, Mapping[str, str]] = {name: {} for name in nodes}
        self.jobs: dict[str, dict[str, Any]] = {}
        self.mpijobs: dict[str, dict[str, Any]] = {}
        self.made: list[dict[str, Any]] = []  # everything that was ever created
        self.removed: list[str] = []
        self.asked: list[str] = []
        self.forbidden: set[str] = set()
        self.unscheduled = False
        self.inside: dict[str, tuple[str, ...]] = {}  # of pods on a node, by node
        self.execs: list[socket.socket] = []
        self.bin: Path | None = None  # first on PATH in what the controller starts
        self._lock = threading.RLock()
        self._server = ThreadingHTTPServer(("127.0.0.1", 0), _handler(self))
        self._server.daemon_threads = True

    @property
    def address(self) -> str:
        return f"http://127.0.0.1:{self._server.server_address[1]}"

    @property
    def kubeconfig(self) -> Path:
        """Written where it is asked for."""
        path = self.folder / "kubeconfig"
        document = {
            "apiVersion": "v1",
            "kind": "Config",
            "current-context": "made",
            "clusters": [{"name": "made", "cluster": {"server": self.address}}],
            "contexts": [{"name": "made", "context": {"cluster": "made", "user": "made"}}],
            "users": [{"name": "made", "user": {}}],
        }
        path.write_text(yaml.safe_dump(document))
        return path

    def __enter__(self) -> Self:
        threading.Thread(target=self._server.serve_forever, args=(0.05,), daemon=True).start()
        return self

    def __exit__(self, *_: object) -> None:
        self._server.shutdown()
        self._server.server_close()

    def dies(self) -> None:
        """The API server is gone at once, with every connection through it."""
        self.__exit__()
        for sock in self.execs:
            with contextlib.suppress(OSError):
                sock.shutdown(socket.SHUT_RDWR)

    def pod(self, namespace: str, name: str) -> Pod | None:
        with self._lock:
            found = (p for p in self.pods if (p.namespace, p.name) == (namespace, name))
            return next(found, None)

    # --- what there is --------------------------------------------------------------------------

    def items(self, kind: str, namespace: str, query: Mapping[str, str]) -> list[dict[str, Any]]:
        with self._lock:
            if kind == "pods":
                found = [pod.document for pod in self.pods if pod.namespace == namespace]
            elif kind == "nodes":
                found = [
                    {"apiVersion": "v1", "kind": "Node", "metadata": {"name": n, "labels": labels}}
                    for n, labels in self.nodes.items()
                ]
            else:
                found = list((self.jobs if kind == "jobs" else self.mpijobs).values())
        wanted = dict(
            part.split("=", 1) for part in query.get("labelSelector", "").split(",") if part
        )
        name = query.get("fieldSelector", "").removeprefix("metadata.name=")
        return [
            each
            for each in found
            if wanted.items() <= (each["metadata"].get("labels") or {}).items()
            and name in ("", each["metadata"]["name"])
        ]

    def create(self, kind: str, namespace: str, document: dict[str, Any]) -> dict[str, Any]:
        document["metadata"] |= {"namespace": namespace, "uid": "made", "resourceVersion": "1"}
        name = document["metadata"]["name"]
        with self._lock:
            self.made.append(document)
            (self.jobs if kind == "jobs" else self.mpijobs)[name] = document
        if kind == "jobs":
            labels = {"job-name": name}
            document["spec"]["selector"] = {"matchLabels": labels}
            document["status"] = {}
            # Its pod takes a moment to begin; until then a wait has nothing to look at.
            threading.Timer(0.3, document["status"].update, [{"ready": 1, "active": 1}]).start()
            template = document["spec"]["template"]["spec"]
            containers = tuple(each["name"] for each in template["containers"])
            self.pods.append(Pod(f"{name}-x7k2p", namespace, labels, template["nodeName"],
                                 containers=containers, bin=self.bin,
                                 inside=self.inside.get(template["nodeName"], ())))  # fmt: skip
        elif self.unscheduled:
            document["spec"]["runPolicy"]["suspend"] = True  # as Kueue does
        else:
            self._start(name, namespace, document["spec"])
        return document

    def delete(self, kind: str, name: str) -> None:
        with self._lock:
            self.removed.append(f"{kind}/{name}")
            self.jobs.pop(name, None)
            self.mpijobs.pop(name, None)
            for pod in [p for p in self.pods if p.name.startswith(name)]:
                pod.log_ends.set()
                self.pods.remove(pod)

    def _start(self, name: str, namespace: str, spec: dict[str, Any]) -> None:
        """As the MPI operator: workers, a host file, a launcher."""
        of = {"training.kubeflow.org/job-name": name}
        worker = spec["mpiReplicaSpecs"]["Worker"]
        terms = worker["template"]["spec"]["affinity"]["nodeAffinity"]
        terms = terms["requiredDuringSchedulingIgnoredDuringExecution"]["nodeSelectorTerms"]
        nodes = [term["matchFields"][0]["values"][0] for term in terms]
        role = "training.kubeflow.org/job-role"
        for number in range(worker["replicas"]):
            labels = {**of, role: "worker", **worker["template"]["metadata"]["labels"]}
            self.pods.append(Pod(f"{name}-worker-{number}", namespace, labels, nodes[number]))
        launcher = Pod(f"{name}-launcher-q8f", namespace,
                       {**of, role: "launcher", "job-name": f"{name}-launcher"},
                       containers=("launcher",))  # fmt: skip
        self.pods.append(launcher)
        self.jobs[f"{name}-launcher"] = {
            "apiVersion": "batch/v1",
            "kind": "Job",
            "metadata": {"name": f"{name}-launcher", "namespace": namespace, "uid": "made"},
            "spec": {"selector": {"matchLabels": {"job-name": f"{name}-launcher"}}},
        }
        container = spec["mpiReplicaSpecs"]["Launcher"]["template"]["spec"]["containers"][0]
        words = [*container["command"], *container.get("args", ())]
        env = {"JOB": name}
        threading.Thread(target=self._run, args=(launcher, words, env), daemon=True).start()

    def _run(self, pod: Pod, words: Sequence[str], env: Mapping[str, str]) -> None:
        path = f"{self.bin}:{os.environ['PATH']}" if self.bin else os.environ["PATH"]
        with subprocess.Popen(words, stdout=subprocess.PIPE, stderr=subprocess.STDOUT,
                              env={**env, "PATH": path}) as child:  # fmt: skip
            assert child.stdout
            for line in child.stdout:
                pod.log.append(line)
        pod.log_ends.set()


def _group(name: str, version: str) -> dict[str, Any]:
    return {
        "name": name,
        "versions": [{"groupVersion": f"{name}/{version}", "version": version}],
    }


def _handler(cluster: Cluster) -> type[BaseHTTPRequestHandler]:
    class Handler(_Handler):
        pass

    Handler.cluster = cluster
    return Handler


class _Handler(BaseHTTPRequestHandler):
    cluster: Cluster
    protocol_version = "HTTP/1.1"

    def log_message(self, format: str, *args: object) -> None:
        """Not on stderr."""

    def do_GET(self) -> None:
        self._answer()

    def do_POST(self) -> None:
        self._answer()

    def do_DELETE(self) -> None:
        self._answer()

    def _answer(self) -> None:
        body = self.rfile.read(int(self.headers.get("Content-Length", 0)))
        url = urlsplit(self.path)
        query = {name: values[-1] for name, values in parse_qs(url.query).items()}
        self.cluster.asked.append(f"{self.command} {url.path}")
        match = _PATH.fullmatch(url.path)
        if match is None:
            return self._discover(url.path)
        kind, name, sub = match["kind"], match["name"], match["sub"]
        namespace = match["namespace"] or "default"
        if (f"{kind}/{sub}" if sub else kind) in self.cluster.forbidden:
            what = f"{kind}/{sub}" if sub else kind
            return self._refuse(403, "Forbidden", f'{kind} "{name}" is forbidden: User "made" '
                                f'cannot create resource "{what}" in API group ""')  # fmt: skip
        if self.command == "POST" and sub is None:
            return self._json(self.cluster.create(kind, namespace, json.loads(body)), 201)
        if name is None:
            return self._list(kind, namespace, query)
        found = self.cluster.items(kind, namespace, {"fieldSelector": f"metadata.name={name}"})
        if not found:
            return self._refuse(404, "NotFound", f'{kind} "{name}" not found')
        if self.command == "DELETE":
            self.cluster.delete(kind, name)
            return self._json({"kind": "Status", "apiVersion": "v1", "status": "Success"})
        if sub is None:
            return self._json(found[0])
        pod = self.cluster.pod(namespace, name)
        assert pod is not None
        if sub == "log":
            return self._log(pod, query)
        if (container := query.get("container", pod.containers[0])) not in pod.containers:
            message = f"container {container} is not valid for pod {name}"
            return self._refuse(400, "BadRequest", message)
        if pod.phase != "Running":
            return self._refuse(400, "BadRequest", f"pod {name} does not have a host assigned")
        return self._exec(pod, parse_qs(url.query)["command"])

    def _json(self, document: Mapping[str, Any], code: int = 200) -> None:
        body = json.dumps(document).encode()
        self.send_response(code)
        self.send_header("Content-Type", "application/json")
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def _refuse(self, code: int, reason: str, message: str) -> None:
        status = {"kind": "Status", "apiVersion": "v1", "status": "Failure"}
        self._json({**status, "reason": reason, "message": message, "code": code}, code)

    def _discover(self, path: str) -> None:
        resources = {
            "/api/v1": ("v1", ("pods", "nodes")),
            "/apis/batch/v1": ("batch/v1", ("jobs",)),
            "/apis/kubeflow.org/v2beta1": ("kubeflow.org/v2beta1", ("mpijobs",)),
        }
        if path == "/api":
            return self._json({"kind": "APIVersions", "versions": ["v1"]})
        if path == "/apis":
            groups = [_group("batch", "v1"), _group("kubeflow.org", "v2beta1")]
            return self._json({"kind": "APIGroupList", "apiVersion": "v1", "groups": groups})
        if path == "/version":
            return self._json({"major": "1", "minor": "32", "gitVersion": "v1.32.0"})
        if path.startswith("/openapi/v3"):
            return self._openapi(path)
        if path not in resources:
            return self._refuse(404, "NotFound", "the server could not find it")
        version, names = resources[path]
        verbs = ["create", "delete", "get", "list", "watch"]
        told = [
            {"name": each, "singularName": each[:-1], "kind": _PLURALS[each], "verbs": verbs,
             "namespaced": each != "nodes"}
            for each in names
        ]  # fmt: skip
        document = {"kind": "APIResourceList", "apiVersion": "v1", "groupVersion": version}
        return self._json({**document, "resources": told})

    def _openapi(self, path: str) -> None:
        """What kubectl looks up before it leaves validation to the server."""
        version = path.removeprefix("/openapi/v3/apis/")
        if version == path:
            url = "/openapi/v3/apis/kubeflow.org/v2beta1"
            paths = {"apis/kubeflow.org/v2beta1": {"serverRelativeURL": url}}
            return self._json({"paths": paths})
        kind = {"group": "kubeflow.org", "version": "v2beta1", "kind": "MPIJob"}
        parameters = [{"name": "fieldValidation", "in": "query", "schema": {"type": "string"}}]
        patch = {"x-kubernetes-group-version-kind": kind, "parameters": parameters}
        at = "/apis/kubeflow.org/v2beta1/namespaces/{namespace}/mpijobs/{name}"
        return self._json(
            {"openapi": "3.0.0", "paths": {at: {"patch": {**patch, "responses": {}}}}}
        )

    def _list(self, kind: str, namespace: str, query: Mapping[str, str]) -> None:
        if query.get("watch") in ("1", "true"):
            return self._watch(kind, namespace, query)
        version = {"jobs": "batch/v1", "mpijobs": "kubeflow.org/v2beta1"}.get(kind, "v1")
        head = {"kind": f"{_PLURALS[kind]}List", "apiVersion": version}
        items = self.cluster.items(kind, namespace, query)
        return self._json({**head, "metadata": {"resourceVersion": "1"}, "items": items})

    def _watch(self, kind: str, namespace: str, query: Mapping[str, str]) -> None:
        """What changes from now on, for as long as somebody listens."""
        self.send_response(200)
        self.send_header("Content-Type", "application/json")
        self.send_header("Connection", "close")
        self.end_headers()
        self.close_connection = True
        known: list[str] = []
        ends = time.monotonic() + min(float(query.get("timeoutSeconds", 30)), 30)
        with contextlib.suppress(OSError):
            while time.monotonic() < ends:
                told = [json.dumps(each) for each in self.cluster.items(kind, namespace, query)]
                for each in told:
                    if each not in known:
                        self.wfile.write(b'{"type": "MODIFIED", "object": %s}\n' % each.encode())
                        self.wfile.flush()
                known = told
                time.sleep(0.05)

    # --- logs -----------------------------------------------------------------------------------

    def _log(self, pod: Pod, query: Mapping[str, str]) -> None:
        if pod.phase != "Running":
            message = f'container "main" in pod "{pod.name}" is waiting to start: PodInitializing'
            return self._refuse(400, "BadRequest", message)
        self.send_response(200)
        self.send_header("Content-Type", "text/plain")
        self.send_header("Connection", "close")
        self.end_headers()
        self.close_connection = True
        left = int(query.get("limitBytes", 1 << 40))
        start = max(0, len(pod.log) - int(query["tailLines"])) if "tailLines" in query else 0
        with contextlib.suppress(OSError):
            for number, line in self._lines(pod, start, follow=query.get("follow") == "true"):
                stamp = f"2026-01-02T03:04:{number / 1e6:012.9f}Z ".encode()
                data = (stamp if query.get("timestamps") == "true" else b"") + line
                self.wfile.write(data[:left])
                self.wfile.flush()
                left -= len(data)
                if left <= 0:
                    return None
        return None

    def _lines(self, pod: Pod, start: int, *, follow: bool) -> Iterator[tuple[int, bytes]]:
        at = start
        while True:
            over = not follow or pod.log_ends.is_set()
            while at < len(pod.log):
                yield at, pod.log[at]
                at += 1
            if over:
                return
            time.sleep(0.01)

    # --- exec -----------------------------------------------------------------------------------

    def _exec(self, pod: Pod, command: list[str]) -> None:
        if self.headers.get("Upgrade", "").lower() != "websocket":
            return self._refuse(400, "BadRequest", "you must specify Upgrade: websocket")
        key = self.headers["Sec-WebSocket-Key"] + _MAGIC
        self.send_response(101, "Switching Protocols")
        self.send_header("Upgrade", "websocket")
        self.send_header("Connection", "Upgrade")
        accept = base64.b64encode(hashlib.sha1(key.encode()).digest()).decode()
        self.send_header("Sec-WebSocket-Accept", accept)
        self.send_header("Sec-WebSocket-Protocol", PROTOCOL)
        self.end_headers()
        self.wfile.flush()
        self.close_connection = True
        words = command[2:] if command[:2] == ["chroot", "/host"] else command
        self.cluster.execs.append(self.connection)
        _Exec(self.connection, self.rfile).run(pod, words)
        return None


class _Exec:
    """One exec over an upgraded connection."""

    def __init__(self, sock: socket.socket, reader: Any) -> None:
        self._sock = sock
        self._reader = reader
        self._lock = threading.Lock()

    def run(self, pod: Pod, words: list[str]) -> None:
        if not pod.shell:
            text = (
                "Internal error occurred: error executing command in container: failed to exec in "
                'container: OCI runtime exec failed: exec failed: exec: "sh": executable file not '
                "found in $PATH: unknown"
            )
            return self._end({"status": "Failure", "message": text, "code": 500,
                              "reason": "InternalError"})  # fmt: skip
        path = f"{pod.bin}:{os.environ['PATH']}" if pod.bin else os.environ["PATH"]
        child = subprocess.Popen(
            [*pod.inside, *words],
            cwd="/",
            env={"PATH": path, "HOSTNAME": pod.name, **pod.env},
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            bufsize=0,
            start_new_session=True,
        )
        pumps = [
            threading.Thread(target=self._pump, args=(channel, stream), daemon=True)
            for channel, stream in ((_STDOUT, child.stdout), (_STDERR, child.stderr))
        ]
        for pump in pumps:
            pump.start()
        threading.Thread(target=self._feed, args=(child,), daemon=True).start()
        # Like a runtime, until the process has ended and its output is closed.
        for pump in pumps:
            pump.join()
        code = child.wait()
        for stream in (child.stdout, child.stderr):
            assert stream
            stream.close()
        if code == 0:
            return self._end({"status": "Success"})
        causes = [{"reason": "ExitCode", "message": str(code if code > 0 else 128 - code)}]
        return self._end({
            "status": "Failure",
            "reason": "NonZeroExitCode",
            "message": f"command terminated with non-zero exit code {code}",
            "details": {"causes": causes},
        })  # fmt: skip

    def _pump(self, channel: int, stream: Any) -> None:
        while data := stream.read(32 << 10):
            with contextlib.suppress(OSError):
                self._send(2, bytes([channel]) + data)

    def _feed(self, child: subprocess.Popen[bytes]) -> None:
        """stdin; the end of the connection is its end, as for a runtime."""
        assert child.stdin
        with contextlib.suppress(OSError, EOFError, ValueError):
            while True:
                code, data = self._frame()
                if code == 9:
                    self._send(10, data)
                elif code == 8 or data[:2] == bytes([_CLOSE, _STDIN]):
                    break
                elif data[:1] == bytes([_STDIN]):
                    rest = data[1:]
                    while rest:
                        rest = rest[child.stdin.write(rest) :]
        with contextlib.suppress(OSError):
            child.stdin.close()
        with contextlib.suppress(OSError, EOFError, ValueError):
            while (frame := self._frame())[0] != 8:
                if frame[0] == 9:
                    self._send(10, frame[1])

    def _frame(self) -> tuple[int, bytes]:
        """The next frame: opcode, unmasked payload."""
        first, second = self._exactly(2)
        length = second & 127
        if length == 126:
            [length] = struct.unpack(">H", self._exactly(2))
        elif length == 127:
            [length] = struct.unpack(">Q", self._exactly(8))
        mask = self._exactly(4)
        data = self._exactly(length)
        key = (mask * (length // 4 + 1))[:length]
        plain = int.from_bytes(data, "big") ^ int.from_bytes(key, "big")
        return first & 15, plain.to_bytes(length, "big")

    def _exactly(self, count: int) -> bytes:
        data = self._reader.read(count)
        if len(data) < count:
            raise EOFError
        return bytes(data)

    def _send(self, code: int, data: bytes) -> None:
        length = len(data)
        if length < 126:
            head = bytes([128 | code, length])
        elif length < 1 << 16:
            head = bytes([128 | code, 126]) + struct.pack(">H", length)
        else:
            head = bytes([128 | code, 127]) + struct.pack(">Q", length)
        with self._lock:
            self._sock.sendall(head + data)

    def _end(self, status: dict[str, Any]) -> None:
        with contextlib.suppress(OSError):
            self._send(2, bytes([_ERROR]) + json.dumps({"metadata": {}, **status}).encode())
            self._send(8, struct.pack(">H", 1000))
