"""Where a host is and how it is reached: inventory, command line and ``~/.ssh/config`` in one.

The inventory beats the command line's defaults, and both beat the configuration file, as with
Ansible. Jump hosts are resolved like hosts of their own.
"""

from __future__ import annotations

import getpass
from collections.abc import Mapping
from dataclasses import field
from pathlib import Path

from commcheck.collect.failures import Peer
from commcheck.collect.hostkeys import Mode, Wanted, lookup_names
from commcheck.collect.sshconfig import Options, SshConfig, expand, is_safe_name
from commcheck.errors import Unreachable
from commcheck.inventory import ssh_arguments
from commcheck.inventory.endpoint import Endpoint
from commcheck.inventory.ssh_arguments import Hop
from commcheck.lazy import dataclass

_MAX_HOPS = 8
_GLOBAL_KNOWN_HOSTS = (Path("/etc/ssh/ssh_known_hosts"), Path("/etc/ssh/ssh_known_hosts2"))


@dataclass(frozen=True, slots=True)
class Target:
    """One SSH server and everything needed to log in to it. Equal targets share a gateway."""

    address: str
    port: int
    user: str
    wanted: Wanted
    key_files: tuple[Path, ...] = ()
    agent: bool = False
    look_for_keys: bool = False
    password_env: str = ""
    jumps: tuple[Target, ...] = ()  # the nearest to us first
    proxy_command: str = ""

    @property
    def peer(self) -> Peer:
        """How messages name it."""
        via = f"{self.jumps[-1].user}@{self.jumps[-1].address}" if self.jumps else ""
        if self.jumps and self.jumps[-1].port != 22:
            via += f":{self.jumps[-1].port}"
        return Peer(self.address, self.port, self.user, via)


@dataclass(frozen=True, slots=True)
class Defaults:
    """What the command line says for every host. ``host_keys`` "" leaves it to the others."""

    host_keys: str = ""
    known_hosts: tuple[Path, ...] = ()
    key_files: tuple[Path, ...] = ()
    user: str = ""
    agent: bool = False
    look_for_keys: bool = False
    home: Path = field(default_factory=Path.home)


def resolve(endpoint: Endpoint, config: SshConfig, defaults: Defaults) -> Target:
    """The target for a host of the inventory.

    Raises ``Unreachable`` ("ssh-config", "password-unchecked").
    """
    options = config.lookup(endpoint.address)
    jumps, command = _way(endpoint, options, config, defaults)
    address = options.hostname or endpoint.address
    port = endpoint.port or options.port or 22
    user = endpoint.user or defaults.user or options.user or getpass.getuser()
    if command:
        command = _command(command, endpoint.address, address, port, user)
    wanted = _wanted(endpoint, options, defaults, address, port, is_host=True)
    if endpoint.password_env and wanted.mode is Mode.INSECURE:
        # As OpenSSH, which offers no password to a host whose key it does not know.
        raise Unreachable(
            "password-unchecked",
            f"host keys are not checked, so the password in {endpoint.password_env} would go to "
            "whoever answers",
            "--host-keys accept-new learns a host's key once, and checks it from then on",
        )
    return Target(
        address=address,
        port=port,
        user=user,
        wanted=wanted,
        key_files=_keys(endpoint, options, defaults),
        agent=defaults.agent or endpoint.use_agent,
        look_for_keys=defaults.look_for_keys or endpoint.look_for_keys,
        password_env=endpoint.password_env or "",
        jumps=jumps,
        proxy_command=command,
    )


def _way(
    endpoint: Endpoint, options: Options, config: SshConfig, defaults: Defaults
) -> tuple[tuple[Target, ...], str]:
    """Jump hosts or a proxy command; the inventory's word is final where it has one."""
    if endpoint.jumps:
        return _jumps(endpoint.jumps, endpoint, config, defaults), ""
    if endpoint.proxy_command is not None:
        return (), endpoint.proxy_command
    if endpoint.jumps is None and options.proxy_jump and options.proxy_jump.lower() != "none":
        hops = parse_jumps(options.proxy_jump)
        # "Host *" with a ProxyJump also matches the jump host: it is not its own jump host.
        if hops[-1].address not in (endpoint.address, options.hostname):
            return _jumps(hops, endpoint, config, defaults), ""
        return (), ""
    return (), options.proxy_command


def _jumps(
    hops: tuple[Hop, ...], endpoint: Endpoint, config: SshConfig, defaults: Defaults
) -> tuple[Target, ...]:
    chain = list(hops)
    # The first hop is reached as the file says, maybe through another.
    while len(chain) <= _MAX_HOPS:
        before = config.lookup(chain[0].address)
        if not before.proxy_jump or before.proxy_jump.lower() == "none":
            break
        more = parse_jumps(before.proxy_jump)
        if any(hop.address in (chain[0].address, before.hostname) for hop in more):
            break
        chain[:0] = more
    else:
        raise Unreachable(
            "ssh-config",
            f"more than {_MAX_HOPS} jump hosts before {endpoint.address}",
            "does a ProxyJump lead back to itself?",
        )
    targets: list[Target] = []
    for hop in chain:
        targets.append(_jump(hop, tuple(targets), endpoint, config, defaults))
    return tuple(targets)


def _jump(
    hop: Hop, before: tuple[Target, ...], endpoint: Endpoint, config: SshConfig, defaults: Defaults
) -> Target:
    options = config.lookup(hop.address)
    address = options.hostname or hop.address
    port = hop.port or options.port or 22
    user = hop.user or options.user or getpass.getuser()
    command = options.proxy_command if not before else ""
    return Target(
        address=address,
        port=port,
        user=user,
        wanted=_wanted(endpoint, options, defaults, address, port, is_host=False),
        key_files=_keys(endpoint, options, defaults),
        agent=defaults.agent or endpoint.use_agent,
        look_for_keys=defaults.look_for_keys or endpoint.look_for_keys,
        jumps=before,
        proxy_command=_command(command, hop.address, address, port, user) if command else "",
    )


def parse_jumps(text: str) -> tuple[Hop, ...]:
    """The hops of a ``ProxyJump`` value. Raises ``Unreachable`` ("ssh-config") where it is none."""
    try:
        return ssh_arguments.jumps(text)
    except ValueError:
        raise Unreachable(
            "ssh-config", f"ProxyJump {text!r} is no list of hosts", "user@host:port,..."
        ) from None


def _keys(endpoint: Endpoint, options: Options, defaults: Defaults) -> tuple[Path, ...]:
    """Keys to try, in order. Files named only by the configuration may be missing, as for ssh."""
    first = [Path(path).expanduser() for path in endpoint.key_files or defaults.key_files]
    more = [path for path in options.identity_files if path.is_file()]
    return tuple(dict.fromkeys(first + more))


def _wanted(
    endpoint: Endpoint,
    options: Options,
    defaults: Defaults,
    address: str,
    port: int,
    *,
    is_host: bool,
) -> Wanted:
    mode = Mode(defaults.host_keys or endpoint.host_keys or options.host_keys or Mode.STRICT)
    alias = options.host_key_alias
    if is_host:
        alias = endpoint.host_key_alias or alias
    elif mode is Mode.PINNED:
        mode = Mode.STRICT  # only a host of the inventory can carry a pin
    ssh = defaults.home / ".ssh"
    inventory = tuple(Path(path).expanduser() for path in endpoint.known_hosts)
    users = inventory or options.known_hosts or (ssh / "known_hosts", ssh / "known_hosts2")
    return Wanted(
        mode=mode,
        names=lookup_names(address, port, alias),
        files=defaults.known_hosts or (*users, *_GLOBAL_KNOWN_HOSTS),
        pinned=(endpoint.pinned_key,) if endpoint.pinned_key else (),
    )


def _command(command: str, typed: str, address: str, port: int, user: str) -> str:
    tokens: Mapping[str, str] = {"h": address, "n": typed, "p": str(port), "r": user}
    for text in (address, typed, user):
        # The command goes through a shell: a name from an inventory must stay a name there.
        if not is_safe_name(text):
            raise Unreachable(
                "ssh-config", f"{text!r} cannot be put into a ProxyCommand", "rename it"
            )
    return expand(command, tokens)
