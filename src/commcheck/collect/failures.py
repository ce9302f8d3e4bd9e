"""Why a connection failed: from an exception and the moment it came to a code, words and a remedy.

The SSH library's own texts mislead ("No existing session" is a time-out, "Error reading SSH
protocol banner" a server that hung up), so what counts is the stage that was reached.
"""

from __future__ import annotations

import errno
import shlex
import socket
from enum import StrEnum

from commcheck.errors import ConnectionLost, HostError, Unreachable
from commcheck.lazy import dataclass

RETRIED = frozenset({"dropped-before-banner", "jump-host-lost", "out-of-resources"})
"""Codes worth another try: sshd drops connections at random above MaxStartups, a lost jump host
takes everyone with it who was on the way through, and other visits end and make room."""

_EXHAUSTED = frozenset({errno.EMFILE, errno.ENFILE, errno.ENOMEM, errno.ENOBUFS})
_NO_ROUTE = frozenset({errno.EHOSTUNREACH, errno.ENETUNREACH, errno.EHOSTDOWN, errno.ENETDOWN})


class Stage(StrEnum):
    """What was being waited for."""

    RESOLVE = "resolve"
    TCP = "tcp"
    FORWARD = "forward"  # the jump host opens the TCP connection
    BANNER = "banner"
    HANDSHAKE = "handshake"
    AUTH = "auth"
    CHANNEL = "channel"
    EXEC = "exec"
    TALK = "talk"


@dataclass(frozen=True, slots=True)
class Moment:
    """When an exception came: the stage, the seconds spent in it and the limit that it had."""

    stage: Stage
    elapsed_s: float
    limit_s: float

    @property
    def timed_out(self) -> bool:
        """Whether the limit was used up; the library polls its clocks every 0.1 s."""
        return self.elapsed_s >= self.limit_s - 0.2


@dataclass(frozen=True, slots=True)
class Peer:
    """Who was talked to, for messages. ``via`` names the jump host in front of it."""

    address: str
    port: int
    user: str
    via: str = ""

    def __str__(self) -> str:
        return f"{self.at} (via {self.via})" if self.via else self.at

    @property
    def at(self) -> str:
        """As OpenSSH says it. ``token-gpu:22`` would be masked like a secret."""
        return f"{self.address} port {self.port}"

    @property
    def ssh(self) -> str:
        """A command that shows the same failure by hand."""
        jump = f"-J {shlex.quote(self.via)} " if self.via else ""
        who = shlex.quote(f"{self.user}@{self.address}")
        return f"ssh -v {jump}-p {self.port} {who} true"


def explain(error: BaseException, moment: Moment, peer: Peer) -> HostError:
    """The ``HostError`` for an exception of the SSH library or the socket. Pure.

    A ``HostError`` is returned as it is.
    """
    if isinstance(error, HostError):
        return error
    found = out_of_resources(error) or _STAGES[moment.stage](error, moment, peer)
    found.__cause__ = error
    return found


def out_of_resources(error: BaseException) -> HostError | None:
    """What to say where it is this machine that has no descriptor, thread or memory left."""
    no_thread = isinstance(error, RuntimeError) and "start new thread" in str(error)
    number = error.errno if isinstance(error, OSError) else None
    # A library that cannot be mapped into memory is an ImportError; where no memory is left for
    # the exception itself, the interpreter has a SystemError to say.
    no_memory = isinstance(error, MemoryError | ImportError | SystemError) or (
        isinstance(error, RuntimeError) and "can't allocate" in str(error)
    )
    if not (no_memory or no_thread or number in _EXHAUSTED):
        return None
    return Unreachable(
        "out-of-resources",
        f"this machine, not the host, has nothing left to connect with: {_text(error)}",
        "fewer --forks; here: ulimit -n -u -v, and the memory limit of the container",
    )


def unforeseen(error: Exception) -> HostError:
    """The ``HostError`` for an exception that nobody foresaw: it costs one host, not the run."""
    found = out_of_resources(error) or HostError(
        "bug",
        f"commcheck itself failed: {type(error).__name__}: {error}"[:300] + _place(error),
        "please report it",
    )
    found.__cause__ = error
    return found


def _place(error: Exception) -> str:
    """File and line, without reading the file: what failed may be for want of memory."""
    last = error.__traceback__
    while last is not None and last.tb_next is not None:
        last = last.tb_next
    return f" ({last.tb_frame.f_code.co_filename}:{last.tb_lineno})" if last is not None else ""


def _tcp(error: BaseException, moment: Moment, peer: Peer) -> HostError:
    number = error.errno if isinstance(error, OSError) else None
    if isinstance(error, socket.gaierror):
        return Unreachable(
            "dns",
            f"the name {peer.address} cannot be resolved: {error.strerror or error}",
            f"getent hosts {shlex.quote(peer.address)}; or set ansible_host to its address",
        )
    if number in (errno.ECONNREFUSED, errno.ECONNRESET):
        return Unreachable(
            "tcp-refused",
            f"{peer} refuses connections: no sshd listens there, or a firewall rejects",
            f"on its console: systemctl status ssh sshd; ss -tlnp | grep :{peer.port}",
        )
    if number in _NO_ROUTE:
        return Unreachable(
            "tcp-unreachable",
            f"there is no route to {peer}: {_text(error)}",
            f"ip route get {shlex.quote(peer.address)}; is the host up, is the address right?",
        )
    if isinstance(error, TimeoutError) or number == errno.ETIMEDOUT or moment.timed_out:
        if moment.stage is Stage.RESOLVE:
            return Unreachable(
                "dns",
                f"no answer to the name {peer.address} within {moment.limit_s:g} s",
                f"getent hosts {shlex.quote(peer.address)}; or set ansible_host to its address",
            )
        return Unreachable(
            "tcp-timeout",
            f"{peer} does not answer within {moment.limit_s:g} s: down, or packets are dropped",
            f"ping -c 3 {shlex.quote(peer.address)}; then look at its console or BMC",
        )
    return Unreachable("tcp-failed", f"no connection to {peer}: {_text(error)}", peer.ssh)


def _forward(error: BaseException, moment: Moment, peer: Peer) -> HostError:
    code = getattr(error, "code", None)  # RFC 4254 5.1: 1 prohibited, 2 connect failed
    if code == 1:
        return Unreachable(
            "channel-refused",
            f"the jump host {peer.via} does not forward to {peer.at}",
            f"on {peer.via}: sshd -T | grep -iE 'allowtcpforwarding|permitopen'",
        )
    if code == 2:
        return Unreachable(
            "tcp-refused",
            f"the jump host {peer.via} cannot connect to {peer.at}",
            f"on {peer.via}: nc -vz {shlex.quote(peer.address)} {peer.port}",
        )
    if moment.timed_out or isinstance(error, TimeoutError):
        return Unreachable(
            "tcp-timeout",
            f"the jump host {peer.via} got no connection to {peer.at} within {moment.limit_s:g} s",
            f"on {peer.via}: nc -vz -w 5 {shlex.quote(peer.address)} {peer.port}",
        )
    return _lost(error, moment, peer)


def _banner(error: BaseException, moment: Moment, peer: Peer) -> HostError:
    if "Indecipherable" in str(error) or "Invalid SSH banner" in str(error):
        return Unreachable(
            "not-ssh",
            f"what answers at {peer} is no SSH server: {_text(error)}",
            "check ansible_host and ansible_port",
        )
    if moment.timed_out:
        return Unreachable(
            "banner-timeout",
            f"{peer} accepts the connection but sends no SSH banner within {moment.limit_s:g} s: "
            "sshd hangs, or the host swaps or has a dead disk",
            f"{peer.ssh}; then look at the host's load, memory and disks on its console",
        )
    return Unreachable(
        "dropped-before-banner",
        f"{peer} closes the connection before its SSH banner: sshd is at MaxStartups, "
        "blocks this address, or cannot start",
        f"{peer.ssh}; on the host: journalctl -u ssh -u sshd -n 50; fewer --forks helps",
    )


def _handshake(error: BaseException, moment: Moment, peer: Peer) -> HostError:
    if _is(error, "IncompatiblePeer"):
        return Unreachable(
            "unsupported-ssh-algorithms",
            f"{peer} and commcheck have no SSH algorithm in common: {_text(error)}",
            "set a ProxyCommand that goes through OpenSSH (ssh -W), or update that sshd",
        )
    if moment.timed_out:
        return Unreachable(
            "handshake-timeout",
            f"{peer} sent its banner and then nothing for {moment.limit_s:g} s",
            f"{peer.ssh}; if it hangs at SSH2_MSG_KEXINIT, look at the path MTU: "
            f"ping -M do -s 1472 {shlex.quote(peer.address)}",
        )
    if isinstance(error, EOFError | OSError):
        return _lost(error, moment, peer)
    return Unreachable(
        "handshake-failed", f"the key exchange with {peer} failed: {_text(error)}", peer.ssh
    )


def _auth(error: BaseException, moment: Moment, peer: Peer) -> HostError:
    if "Authentication timeout" in str(error) or (moment.timed_out and not str(error)):
        return Unreachable(
            "auth-timeout",
            f"{peer} does not answer the login of {peer.user} within {moment.limit_s:g} s: "
            "its directory service (LDAP, SSSD), DNS or home file system may hang",
            f"{peer.ssh}; on the host: time getent passwd {shlex.quote(peer.user)}",
        )
    if "No authentication methods available" in str(error):
        return Unreachable(
            "auth-refused",
            f"there is nothing to log in to {peer} with: no key, no agent, no password",
            "set ansible_ssh_private_key_file, or give --key FILE or --agent",
        )
    if "transport shut down" in str(error):
        return Unreachable(
            "connection-lost",
            f"{peer} closed the connection during the login of {peer.user}: it broke, or too "
            "many keys were offered",
            f"{peer.ssh}; on the host: journalctl -u ssh -u sshd -n 50",
        )
    if _is(error, "AuthenticationException"):
        return Unreachable(
            "auth-refused",
            f"{peer} refuses the login of {peer.user}: {_text(error)}",
            f"{peer.ssh}; is the key in ~{peer.user}/.ssh/authorized_keys there?",
        )
    return _lost(error, moment, peer)


def _channel(error: BaseException, moment: Moment, peer: Peer) -> HostError:
    if _is(error, "ChannelException") or "opening channel" in str(error) or moment.timed_out:
        return Unreachable(
            "channel-refused",
            f"{peer} lets {peer.user} log in but opens no session: {_text(error)}",
            "on the host: sshd -T | grep -iE 'maxsessions|forcecommand'; ulimit -u",
        )
    return _lost(error, moment, peer)


def _exec(error: BaseException, moment: Moment, peer: Peer) -> HostError:
    if isinstance(error, EOFError | ConnectionError):
        return _lost(error, moment, peer)
    return Unreachable(
        "no-runner",
        f"{peer} lets {peer.user} log in but runs no command: {_text(error)}",
        f"{peer.ssh}; the account needs a POSIX shell, without a forced command",
    )


def _lost(error: BaseException, moment: Moment, peer: Peer) -> HostError:
    kind = ConnectionLost if moment.stage is Stage.TALK else Unreachable
    return kind(
        "connection-lost",
        f"{peer} broke the connection while we waited for {_WAITED_FOR[moment.stage]}: "
        f"{_text(error)}",
        f"{peer.ssh}; on the host: journalctl -u ssh -u sshd -n 50",
    )


def _is(error: BaseException, name: str) -> bool:
    """By name, since importing the SSH library costs half a second that --help must not pay."""
    return any(each.__name__ == name for each in type(error).__mro__)


def _text(error: BaseException) -> str:
    if isinstance(error, EOFError) and not str(error):
        return "it closed the connection"
    words = error.strerror if isinstance(error, OSError) and error.strerror else str(error)
    # Some of it was sent by the peer.
    plain = "".join(each if each.isprintable() else " " for each in words)
    return " ".join(plain.split())[:200] or type(error).__name__


_WAITED_FOR = {
    Stage.FORWARD: "the forwarded connection",
    Stage.HANDSHAKE: "the key exchange",
    Stage.AUTH: "the login",
    Stage.CHANNEL: "a session",
    Stage.EXEC: "the command to start",
    Stage.TALK: "answers",
}

_STAGES = {
    Stage.RESOLVE: _tcp,
    Stage.TCP: _tcp,
    Stage.FORWARD: _forward,
    Stage.BANNER: _banner,
    Stage.HANDSHAKE: _handshake,
    Stage.AUTH: _auth,
    Stage.CHANNEL: _channel,
    Stage.EXEC: _exec,
    Stage.TALK: _lost,
}
