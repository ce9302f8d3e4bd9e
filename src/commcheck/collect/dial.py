"""One authenticated connection: Fabric's, but with the host key checked by us, before the login."""

from __future__ import annotations

import logging
import threading
import time
from collections.abc import Mapping
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from commcheck.collect.failures import Moment, Peer, Stage, explain
from commcheck.collect.hostkeys import HostKey, HostKeys
from commcheck.collect.lifetime import Visit
from commcheck.collect.target import Target
from commcheck.errors import HostError, Unreachable
from commcheck.files import read_whole
from commcheck.lazy import dataclass

if TYPE_CHECKING:
    from fabric import Config, Connection
    from paramiko import PKey, Transport

KEEPALIVE_S: Final = 15
_KEY_MOST: Final = 1 << 20

# The library logs tracebacks of every failed connection; ours are told as HostErrors.
logging.getLogger("paramiko").addHandler(logging.NullHandler())


class Progress:
    """How far an attempt has come, so that an exception can be told for what it is."""

    def __init__(self, peer: Peer) -> None:
        self.peer = peer
        self.step(Stage.RESOLVE, 0.0)

    def step(self, stage: Stage, limit_s: float) -> None:
        """From now on ``stage`` is waited for."""
        self._stage, self._limit_s, self._since = stage, limit_s, time.monotonic()
        self._transport: Transport | None = None

    def follow(self, transport: Transport, limit_s: float) -> None:
        """From now on ``transport`` waits for a banner, then for the key exchange."""
        self.step(Stage.BANNER, limit_s)
        self._transport = transport

    @property
    def stage(self) -> Stage:
        """What is waited for."""
        if self._transport is not None and self._transport.remote_version:
            return Stage.HANDSHAKE
        return self._stage

    def explain(self, error: BaseException) -> HostError:
        """The ``HostError`` for an exception that came now."""
        elapsed = time.monotonic() - self._since
        return explain(error, Moment(self.stage, elapsed, self._limit_s), self.peer)


class Keys:
    """Private keys, each read once in a run. Thread-safe."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._loaded: dict[Path, PKey | HostError] = {}

    def load(self, path: Path) -> PKey:
        """The key in a file, with the certificate beside it. Raises ``Unreachable``."""
        with self._lock:
            if path not in self._loaded:
                self._loaded[path] = self._read(path)
            found = self._loaded[path]
        if isinstance(found, HostError):
            raise Unreachable(found.code, found.reason, found.remedy)
        return found

    def _read(self, path: Path) -> PKey | HostError:
        from paramiko import PKey, SSHException

        try:
            read_whole(path, _KEY_MOST)  # the library would wait for a pipe's writer
            return PKey.from_path(path)
        except TypeError:  # how the cryptography library says that it wants a passphrase
            return Unreachable(
                "key-unreadable",
                f"the private key {path} has a passphrase",
                f"ssh-add {path}, and let the agent be used: --agent",
            )
        except (OSError, ValueError, SSHException) as error:
            why = error.strerror if isinstance(error, OSError) else str(error)
            return Unreachable(
                "key-unreadable",
                f"the private key {path} cannot be read: {why}",
                f"ls -l {path}; ssh-keygen -y -f {path}",
            )


@dataclass(frozen=True, slots=True)
class Dialer:
    """What every connection of a run shares."""

    host_keys: HostKeys
    keys: Keys
    environ: Mapping[str, str]
    connect_timeout_s: float

    def log_in(self, target: Target, sock: Any, visit: Visit, progress: Progress) -> Connection:
        """Check the host key, authenticate. ``sock`` and all that follows is held by ``visit``.

        Raises what the library raises; ``progress`` can tell it.
        """
        make, config = _fabric()
        limit_s = visit.left_s(self.connect_timeout_s)
        connection = make(
            host=target.address,
            port=target.port,
            user=target.user,
            config=config,
            gateway=False,
            forward_agent=False,
            connect_kwargs={
                "sock": sock,
                "timeout": limit_s,
                # The overall limit must strike first: then an error at once is a hang-up.
                "banner_timeout": limit_s + 5,
                "auth_timeout": limit_s,
                "channel_timeout": limit_s,
                "transport_factory": self._transport_factory(target, visit, progress, limit_s),
                **self._credentials(target),
            },
        )
        connection.client.set_missing_host_key_policy(self._policy(target, progress, limit_s))
        try:
            connection.open()
        except BaseException:
            connection.client.close()  # and with it the line to the agent
            raise
        connection.transport.set_keepalive(KEEPALIVE_S)
        return connection

    def _credentials(self, target: Target) -> dict[str, Any]:
        first, *more = target.key_files or (None,)
        return {
            "pkey": self.keys.load(first) if first else None,
            "key_filename": [str(path) for path in more if path.is_file()],
            "allow_agent": target.agent,
            "look_for_keys": target.look_for_keys,
            "password": self.environ.get(target.password_env) if target.password_env else None,
        }

    def _transport_factory(
        self, target: Target, visit: Visit, progress: Progress, limit_s: float
    ) -> Any:
        from paramiko import Transport

        known = self.host_keys.types(target.wanted)

        def make(sock: Any, disabled_algorithms: Any = None) -> Transport:
            transport = Transport(sock, disabled_algorithms=disabled_algorithms)
            visit.hold(transport.close)
            # Its handshake timer would be one more thread for each host, with no other limit.
            transport.packetizer.start_handshake = _no_timer  # type: ignore[assignment]
            options = transport.get_security_options()
            # AES-GCM costs half of CTR with HMAC here, and the library ranks it last.
            options.ciphers = sorted(options.ciphers, key=lambda name: "gcm" not in name)
            # A host with keys of several types must offer the one that we know.
            options.key_types = sorted(
                options.key_types, key=lambda name: _key_type(name) not in known
            )
            progress.follow(transport, limit_s)
            return transport

        return make

    def _policy(self, target: Target, progress: Progress, limit_s: float) -> Any:
        from paramiko import MissingHostKeyPolicy

        host_keys = self.host_keys

        class Ours(MissingHostKeyPolicy):
            """Asked for every key, since the client itself is given none to know."""

            def missing_host_key(self, client: Any, hostname: str, key: PKey) -> None:
                offered = HostKey(key.get_name(), key.asbytes())
                host_keys.check(str(target.peer), target.wanted, offered)
                progress.step(Stage.AUTH, limit_s)

        return Ours()


@cache
def _fabric() -> tuple[type[Connection], Config]:
    """Fabric's connection, and the settings that all of them share."""
    from fabric import Config, Connection
    from paramiko import SSHConfig

    class Plain(Connection):  # type: ignore[misc]  # Fabric has no types
        """Its attributes are attributes: Fabric's are written to the settings, which would race.

        They also take longer to set than the login takes.
        """

        __setattr__ = object.__setattr__

    # Empty and lazy: no file may change what we decided.
    config = Config(ssh_config=SSHConfig(), lazy=True)
    config._set(_root=config, _keypath=())  # else each look into it searches all it has for them
    return Plain, config


def _no_timer(_timeout_s: float) -> None:
    """The handshake has the limit of the connection's start."""


def _key_type(algorithm: str) -> str:
    """The key type behind a signature algorithm: rsa-sha2-512 signs with an ssh-rsa key."""
    return "ssh-rsa" if algorithm.startswith("rsa-sha2-") else algorithm
