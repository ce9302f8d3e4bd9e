"""Visits pods and nodes by ``kubectl exec``: the same runner, over the pipes of a child process."""

from __future__ import annotations

import contextlib
import math
import subprocess
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from typing import Final

from commcheck.collect.base import Ask, Frame, Request, Sink, State
from commcheck.collect.local import LocalPipe, Pipes, SessionOf, on_errand
from commcheck.collect.session import Chunk, Session, command_line, converse
from commcheck.errors import ConnectionLost, HostError, Interrupted, InventoryError, Unreachable
from commcheck.inventory.endpoint import endpoint
from commcheck.kube import logs, nodes
from commcheck.kube.call import GoOn, call
from commcheck.kube.failures import explain, no_kubectl, telling
from commcheck.kube.place import Place
from commcheck.model import Host

_KEPT_BYTES: Final = 4096
_LEAVE_S: Final = 2.0
"""For ``kubectl`` to hand on that our end is closed; the runner in the pod clears up without it."""

_CALL_S: Final = 30.0
_READY_S: Final = 90.0
"""An image may have to be pulled."""


class KubectlVisitor:
    """Visits hosts that are pods, or nodes where ``may_debug`` says so.

    ``session_of`` gives each visit its own session. ``note`` is told what was left behind.
    """

    def __init__(
        self, session_of: SessionOf, *, may_debug: bool, note: Callable[[str], None]
    ) -> None:
        self._session_of = session_of
        self._may_debug = may_debug
        self._note = note
        self._pipes = Pipes(_LEAVE_S)

    def visit(self, host: Host, ask: Ask, sink: Sink) -> None:
        """Run the bundle there. Raises ``HostError``; ``Interrupted`` after ``stop``."""
        place, session, began = _place(host), self._session_of(host), time.monotonic()
        beside = _Beside(ask)
        if not place.node:
            words = place.exec_words("sh", "-c", command_line(session))
            self._talk(place, words, session, beside, sink)
        else:
            with self._pod_on(place, session) as words:
                left_s = max(1.0, session.deadline_s - (time.monotonic() - began))
                self._talk(place, words, replace(session, deadline_s=left_s), beside, sink)
        for request in beside.logs:
            left_s = max(1.0, session.deadline_s - (time.monotonic() - began))
            sink(_log_frame(place, request, left_s, self._pipes.go_on))

    def errand(self, session: str, deadline_s: float) -> KubectlVisitor:
        """See ``Traveller``."""
        session_of = on_errand(self._session_of, session, deadline_s)
        return KubectlVisitor(session_of, may_debug=self._may_debug, note=self._note)

    def stop(self) -> None:
        """End every session that is open, and open no other."""
        self._pipes.stop()

    def _talk(
        self, place: Place, words: tuple[str, ...], session: Session, beside: _Beside, sink: Sink
    ) -> None:
        said = bytearray()
        try:
            with self._pipes.to(words) as pipe:
                converse(_Listening(pipe, said), session, beside.ask, sink)
        except OSError as error:
            raise no_kubectl(error) from error
        except Unreachable as error:
            raise explain(_text(said), place) from error
        except ConnectionLost as error:
            raise _with_last_words(error, _text(said), place) from error

    @contextlib.contextmanager
    def _pod_on(self, place: Place, session: Session) -> Iterator[tuple[str, ...]]:
        """A pod on the node for the time of the block: the words that run the runner there."""
        if not self._may_debug:
            raise Unreachable(
                "debug-pod",
                f"{place} is looked at through a privileged pod, and nobody allowed one",
                "add --allow debug-pod, or reach the node by SSH",
            )
        name, base = nodes.name_of(session.mark), place.cluster.words
        job = nodes.manifest(name, place, session.deadline_s + _READY_S)
        create = (*base, "create", "--validate=false", "-f", "-")
        limit_s = min(_READY_S, session.deadline_s)
        ready = ("--for=jsonpath={.status.ready}=1", f"--timeout={math.ceil(limit_s)}s")
        wait, go_on = (*base, "wait", f"job/{name}", *ready), self._pipes.go_on
        try:
            call(create, place, limit_s=_CALL_S, data=job, go_on=go_on)
            call(wait, place, limit_s=limit_s + _CALL_S, go_on=go_on)
            inside = ("chroot", nodes.ROOT, "sh", "-c", command_line(session))
            yield (*base, "exec", "-i", f"job/{name}", "--container=look", "--", *inside)
        finally:
            self._remove((*base, "delete", "job", name), name)

    def _remove(self, words: tuple[str, ...], name: str) -> None:
        """Delete a job and its pod. In a session of its own: it outlives us, if it must."""
        how = ("--ignore-not-found", "--wait=false", "--cascade=background")
        try:
            child = subprocess.Popen(  # noqa: S603 - words, no shell
                (*words, *how),
                stdin=subprocess.DEVNULL,
                stdout=subprocess.DEVNULL,
                stderr=subprocess.DEVNULL,
                start_new_session=True,
            )
            code = child.wait(_CALL_S)
        except (OSError, subprocess.TimeoutExpired):
            code = -1
        if code:
            self._note(f"job {name} could not be deleted; the cluster ends it by its deadline")


def _place(host: Host) -> Place:
    try:
        place = endpoint(host).place
    except InventoryError as error:
        raise Unreachable("inventory", str(error)) from error
    if place is None:
        raise Unreachable("inventory", f"{host.name} is no pod and no node")
    return place


def _text(said: bytearray) -> str:
    return said.decode(errors="replace")


def _with_last_words(error: ConnectionLost, said: str, place: Place) -> ConnectionLost:
    line = telling(said)
    reason = f"{error.reason}; kubectl: {line}" if line else error.reason
    remedy = f"was it evicted, restarted or out of memory? {place.by_hand}"
    return ConnectionLost(error.code, reason, remedy if error.code == "connection-lost" else "")


class _Listening:
    """A pipe to ``kubectl``; what it says last on stderr is kept in ``said``."""

    def __init__(self, pipe: LocalPipe, said: bytearray) -> None:
        self._pipe = pipe
        self._said = said

    def send(self, data: bytes) -> None:
        self._pipe.send(data)

    def receive(self, timeout_s: float) -> Chunk | None:
        chunk = self._pipe.receive(timeout_s)
        if chunk is not None and chunk.stream == "err":
            self._said += chunk.data
            del self._said[:-_KEPT_BYTES]
        return chunk

    def close(self) -> None:
        self._pipe.close()


class _Beside:
    """Requests that are answered beside the pod: its log, which its kubelet keeps."""

    def __init__(self, ask: Ask) -> None:
        self._ask = ask
        self.logs: list[Request] = []

    def ask(self, frame: Frame) -> Sequence[Request]:
        requests = self._ask(frame)
        self.logs = [each for each in requests if each.command.argv[:2] == ("kubectl", "logs")]
        return [each for each in requests if each not in self.logs]


def _log_frame(place: Place, request: Request, left_s: float, go_on: GoOn) -> Frame:
    began, stdout, stderr, rc = time.monotonic(), b"", b"", 0
    try:
        stdout = logs.read(place, min(request.command.timeout_s, left_s), go_on=go_on)
    except Interrupted:
        raise
    except HostError as error:
        stderr, rc = error.reason.encode(errors="replace"), 1
    seconds = round(time.monotonic() - began, 3)
    return Frame(request.key, stdout, stderr, rc, 0.0, seconds, state=State.DONE)
