"""How a host is to be reached, from Ansible's connection variables and our own.

What the inventory does not say is ``None`` or empty: ``~/.ssh/config`` and the command line
decide it. What it says and we do not understand is refused, never ignored.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Collection
from dataclasses import replace
from typing import Final, NoReturn, TypeVar

from commcheck.errors import InventoryError
from commcheck.inventory import kubectl
from commcheck.inventory.declared import Opaque, quoted
from commcheck.inventory.ssh_arguments import Arguments, Hop, port, without_config, word
from commcheck.kube.place import CONTAINER_LOG, Cluster, Place
from commcheck.lazy import dataclass, regex
from commcheck.model import Host

T = TypeVar("T")

# Where several names mean one thing, the first that is set counts.
_ADDRESS: Final = ("ansible_host", "ansible_ssh_host")
_PORT: Final = ("ansible_port", "ansible_ssh_port")
_USER: Final = ("ansible_user", "ansible_ssh_user")
_KEY: Final = ("ansible_private_key_file", "ansible_ssh_private_key_file")
_BECOME_USER: Final = ("ansible_become_user", "ansible_sudo_user")
PASSWORDS: Final = ("ansible_password", "ansible_ssh_pass", "ansible_ssh_password")
_ARGS: Final = ("ansible_ssh_args", "ansible_ssh_common_args", "ansible_ssh_extra_args")
_CHECKING: Final = ("ansible_host_key_checking", "ansible_ssh_host_key_checking")

CONNECTION: Final = (
    frozenset((*_ADDRESS, *_PORT, *_USER, *_KEY, *_BECOME_USER, *PASSWORDS, *_ARGS, *_CHECKING))
    | {"ansible_connection", "ansible_become"}
    | kubectl.VARIABLES
)
"""The variables of Ansible that are read here; every other one is never looked at."""

_SSH: Final = ("ssh", "paramiko", "paramiko_ssh", "smart")
_ENVIRONMENT: Final = regex(r"[A-Za-z_][A-Za-z0-9_]*")
_FINGERPRINT: Final = regex(r"SHA256:[A-Za-z0-9+/]{43}=?")


@dataclass(frozen=True, slots=True, kw_only=True)
class Endpoint:
    """What the inventory says about reaching a host.

    ``jumps`` in the order in which they are passed; () and a ``proxy_command`` of "" switch off
    what ``~/.ssh/config`` says; ``host_keys``: "strict", "accept-new" or
    "insecure"; ``pinned_key``: the one fingerprint the host may show; ``password_env``: the
    environment variable that holds the password; ``path``: folders to add to the remote PATH;
    ``host_key_alias``: the name under which its key is known.
    """

    kind: str = "ssh"  # "ssh", "local" or "kubectl"
    address: str
    port: int | None = None
    user: str | None = None
    key_files: tuple[str, ...] = ()
    jumps: tuple[Hop, ...] | None = None
    proxy_command: str | None = None
    host_keys: str | None = None
    known_hosts: tuple[str, ...] = ()
    host_key_alias: str | None = None
    pinned_key: str | None = None
    use_agent: bool = False
    look_for_keys: bool = False
    password_env: str | None = None
    become: bool = False
    path: tuple[str, ...] = ()
    place: Place | None = None  # of a pod or a node


def endpoint(host: Host) -> Endpoint:
    """How to reach a host. Raises ``InventoryError`` with the place of what is wrong."""
    read = _Variables(host)
    read.refuse_passwords()
    kind = read.first(("ansible_connection",), _kind) or "ssh"
    begun = Endpoint(kind=kind, address=read.first(_ADDRESS, word) or host.name)
    if kind == "kubectl":
        place = kubectl.place(host.name, read.first, read.wrong)
        begun = replace(begun, address=place.pod or place.node, place=place)
    elif host.variables.get("commcheck_nccl_log") == CONTAINER_LOG:
        read.wrong("commcheck_nccl_log", f"only a pod has {CONTAINER_LOG!r}", "connection")
    # ssh(1): "[user@]hostname". Ansible hands the word on; who names a user elsewhere is stronger.
    user, _, address = begun.address.rpartition("@")
    if kind == "ssh" and user and address and not address.startswith("-"):
        begun = replace(begun, address=address, user=user)
    said = Arguments()
    for name in _ARGS:
        if text := read.first((name,), _text):
            try:
                said = said.then(text)
            except ValueError as error:
                read.wrong(name, str(error), "ssh-argument")
    checking = read.first(_CHECKING, _flag)
    key = read.first(_KEY, _text)
    # Only root sees more: as another user there is nothing to ask, and root was not granted.
    becomes = read.first(_BECOME_USER, word)
    return replace(
        begun,
        port=read.first(_PORT, port) or said.port,
        user=read.first(_USER, word) or said.user or begun.user,
        key_files=((key,) if key else ()) + said.key_files,
        jumps=said.jumps,
        proxy_command=said.proxy_command,
        host_keys=said.host_keys or {None: None, True: "strict", False: "insecure"}[checking],
        known_hosts=said.known_hosts,
        host_key_alias=said.host_key_alias,
        pinned_key=read.first(("commcheck_host_key",), _fingerprint),
        use_agent=read.first(("commcheck_ssh_agent",), _flag) or False,
        look_for_keys=read.first(("commcheck_ssh_look_for_keys",), _flag) or False,
        password_env=read.first(("commcheck_password_env",), _environment),
        become=read.first(("ansible_become",), _flag) is True and becomes in (None, "root"),
        path=read.first(("commcheck_path",), _folders) or (),
    )


def with_given(host: Host, given: Collection[str]) -> Host:
    """The host without what of it cannot be read, where the command line says the same thing.

    ``given``: "user", "key_files" and "ssh_config", which also stands for the file after ``-F``.
    """
    instead = {"user": _USER, "key_files": _KEY, "ssh_config": _ARGS}
    unread = {
        name
        for option, names in instead.items()
        if option in given
        for name in names
        if isinstance(host.variables.get(name), Opaque)
    }
    variables = {name: each for name, each in host.variables.items() if name not in unread}
    for name in _ARGS if "ssh_config" in given else ():
        if isinstance(text := variables.get(name), str):
            variables[name] = without_config(text)
    return host if variables == host.variables else replace(host, variables=variables)


def cluster_of(host: Host) -> Cluster:
    """The cluster that a host's variables lead to, whatever the host is. Raises as ``endpoint``."""
    return kubectl.cluster(_Variables(host).first)


class _Variables:
    """Reads a host's variables, naming the place where one is wrong."""

    def __init__(self, host: Host) -> None:
        self._host = host

    def wrong(self, name: str, what: str, rule: str) -> NoReturn:
        # "ansible_password: is ..." would be masked, and with it what to do.
        told = f"{name}{'' if what.startswith('is ') else ':'} {what}"
        raise InventoryError(f"{self._host.origin_of(name)}: error: {told} [{rule}]")

    def first(self, names: tuple[str, ...], read: Callable[[object], T]) -> T | None:
        """The first of these that is set, read; None where none is."""
        for name in names:
            value = self._host.variables.get(name)
            if value is None or value == "":
                continue
            if isinstance(value, Opaque):
                self.wrong(name, value.why, value.rule)
            try:
                return read(value)
            except ValueError as error:
                self.wrong(name, f"{quoted(value)} {error}", "connection")
        return None

    def refuse_passwords(self) -> None:
        for name in PASSWORDS:
            value = self._host.variables.get(name)
            if value is None or value == "":
                continue
            held = (
                value.why if isinstance(value, Opaque) else "a password does not belong in a file"
            )
            self.wrong(
                name,
                f"is not used: {held}; use a key, or name an environment variable that holds the "
                "password with commcheck_password_env",
                "password",
            )


def _text(value: object) -> str:
    if not isinstance(value, str) or any(ord(char) < 32 for char in value):
        raise ValueError("is no text of one line")
    return value


def _flag(value: object) -> bool:
    text = str(value).lower()
    if text in ("true", "yes", "on", "1", "y", "t"):
        return True
    if text in ("false", "no", "off", "0", "n", "f"):
        return False
    raise ValueError("is neither true nor false")


def _kind(value: object) -> str:
    name = str(value).rpartition(".")[2]
    if name in ("local", "kubectl"):
        return name
    if name not in _SSH:
        raise ValueError(
            "is a connection that commcheck has not; it has ssh, local and kubectl: "
            "leave such hosts out with --limit"
        )
    return "ssh"


def _fingerprint(value: object) -> str:
    if not isinstance(value, str) or not _FINGERPRINT.fullmatch(value):
        raise ValueError("is no fingerprint; ssh-keygen -lf prints one: SHA256:...")
    return value.rstrip("=")


def _environment(value: object) -> str:
    if not isinstance(value, str) or not _ENVIRONMENT.fullmatch(value):
        raise ValueError("is no name of an environment variable")
    return value


def _folders(value: object) -> tuple[str, ...]:
    folders = value.split(":") if isinstance(value, str) else value
    if not isinstance(folders, list) or not all(
        isinstance(each, str) and re.fullmatch(r"/[A-Za-z0-9_./*+@-]*", each) for each in folders
    ):
        raise ValueError("is no list of absolute folders")
    return tuple(folders)
