"""How a host is to be reached, from Ansible's connection variables and our own.

What the inventory does not say is ``None`` or empty: ``~/.ssh/config`` and the command line
decide it. What it says and we do not understand is refused, never ignored.
"""

from __future__ import annotations

import re
import shlex
from collections.abc import Callable, Collection, Iterator
from dataclasses import replace
from typing import Final, NoReturn, TypeVar

from commcheck.errors import InventoryError
from commcheck.inventory import kubectl
from commcheck.inventory.declared import Opaque, quoted
from commcheck.inventory.ranges import is_address
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
_NAME: Final = regex(r"[^\s\x00-\x1f\x7f]{1,255}")
_ENVIRONMENT: Final = regex(r"[A-Za-z_][A-Za-z0-9_]*")
_FINGERPRINT: Final = regex(r"SHA256:[A-Za-z0-9+/]{43}=?")
_HOST_KEYS: Final = {
    "yes": "strict",
    "true": "strict",
    "accept-new": "accept-new",
    "no": "insecure",
    "off": "insecure",
    "false": "insecure",
}
# They set OpenSSH's own connection sharing, patience, chatter, algorithms and ways to log in;
# commcheck has its own of each, and forwards nothing, whatever is said here.
_HARMLESS: Final = {
    "addkeystoagent",
    "addressfamily",
    "batchmode",
    "casignaturealgorithms",
    "challengeresponseauthentication",
    "checkhostip",
    "ciphers",
    "compression",
    "connectionattempts",
    "connecttimeout",
    "controlmaster",
    "controlpath",
    "controlpersist",
    "forwardagent",
    "forwardx11",
    "forwardx11timeout",
    "forwardx11trusted",
    "gssapiauthentication",
    "gssapidelegatecredentials",
    "hashknownhosts",
    "hostbasedauthentication",
    "hostkeyalgorithms",
    "identitiesonly",  # keys that are not named are offered only where that is asked for, always
    "ipqos",
    "kbdinteractiveauthentication",
    "kexalgorithms",
    "loglevel",
    "macs",
    "nohostauthenticationforlocalhost",
    "numberofpasswordprompts",
    "passwordauthentication",
    "preferredauthentications",
    "pubkeyacceptedalgorithms",
    "pubkeyacceptedkeytypes",
    "pubkeyauthentication",
    "rekeylimit",
    "requesttty",
    "requiredrsasize",
    "serveralivecountmax",
    "serveraliveinterval",
    "tcpkeepalive",
    "updatehostkeys",
    "visualhostkey",
}
_HARMLESS_FLAGS: Final = regex(r"-[246AaCKkNnqTtvXxYy]+")
"""Without a value: forwarding that commcheck does not do, chatter, terminals and the like."""


@dataclass(frozen=True, slots=True)
class Hop:
    """A jump host."""

    address: str
    port: int | None = None
    user: str | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Endpoint:
    """What the inventory says about reaching a host.

    ``jumps`` in the order in which they are passed; ``host_keys``: "strict", "accept-new" or
    "insecure"; ``pinned_key``: the one fingerprint the host may show; ``password_env``: the
    environment variable that holds the password; ``path``: folders to add to the remote PATH;
    ``host_key_alias``: the name under which its key is known.
    """

    kind: str = "ssh"  # "ssh", "local" or "kubectl"
    address: str
    port: int | None = None
    user: str | None = None
    key_files: tuple[str, ...] = ()
    jumps: tuple[Hop, ...] = ()
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
    begun = Endpoint(kind=kind, address=read.first(_ADDRESS, _word) or host.name)
    if kind == "kubectl":
        place = kubectl.place(host.name, read.first, read.wrong)
        begun = replace(begun, address=place.pod or place.node, place=place)
    elif host.variables.get("commcheck_nccl_log") == CONTAINER_LOG:
        read.wrong("commcheck_nccl_log", f"only a pod has {CONTAINER_LOG!r}", "connection")
    # ssh(1): "[user@]hostname". Ansible hands the word on; who names a user elsewhere is stronger.
    user, _, address = begun.address.rpartition("@")
    if kind == "ssh" and user and _NAME.fullmatch(address) and not address.startswith("-"):
        begun = replace(begun, address=address, user=user)
    for name in _ARGS:
        if arguments := read.first((name,), _text):
            begun = _Arguments(read, name).on(begun, arguments)
    checking = read.first(_CHECKING, _flag)
    key = read.first(_KEY, _text)
    # Only root sees more: as another user there is nothing to ask, and root was not granted.
    becomes = read.first(_BECOME_USER, _word)
    return replace(
        begun,
        port=read.first(_PORT, _port) or begun.port,
        user=read.first(_USER, _word) or begun.user,
        key_files=((key,) if key else ()) + begun.key_files,
        host_keys=begun.host_keys or {None: None, True: "strict", False: "insecure"}[checking],
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
            variables[name] = _without_config(text)
    return host if variables == host.variables else replace(host, variables=variables)


def _without_config(text: str) -> str:
    """Arguments of ssh without ``-F FILE``; one within a ProxyCommand is that command's own."""
    try:
        words = shlex.split(text)
    except ValueError:
        return text  # refused where it is read
    kept = [
        word
        for before, word in zip(["", *words], words, strict=False)
        if not word.startswith("-F") and before != "-F"
    ]
    return text if kept == words else shlex.join(kept)


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


class _Arguments:
    """Reads the ``ssh`` arguments of one variable: those that say where and as whom."""

    def __init__(self, read: _Variables, name: str) -> None:
        self._read = read
        self._name = name

    def on(self, begun: Endpoint, text: str) -> Endpoint:
        try:
            words = shlex.split(text)
        except ValueError as error:
            self._refuse(text, str(error).lower())
        for flag, value in self._pairs(words):
            try:
                begun = self._option(begun, flag, value)
            except ValueError as error:
                self._refuse(f"{flag} {value}", str(error))
        return begun

    def _refuse(self, what: str, why: str) -> NoReturn:
        self._read.wrong(self._name, f"{quoted(what)} {why}", "ssh-argument")

    def _pairs(self, words: list[str]) -> Iterator[tuple[str, str]]:
        waiting = iter(words)
        for word in waiting:
            flag, value = word[:2], word[2:]
            if _HARMLESS_FLAGS.fullmatch(word):
                continue
            if flag not in ("-J", "-o", "-i", "-p", "-l", "-F"):
                self._refuse(word, "is an ssh argument that commcheck does not know")
            value = value or next(waiting, "")
            if not value:
                self._refuse(word, "lacks its value")
            if flag == "-F":
                named = f"name the file for all hosts: --ssh-config {shlex.quote(value)}"
                self._refuse(f"-F {value}", f"is not followed for some hosts alone; {named}")
            yield flag, value

    def _option(self, begun: Endpoint, flag: str, value: str) -> Endpoint:
        if flag == "-o":
            name, _, value = value.strip().partition("=" if "=" in value else " ")
            return self._named(begun, name.strip(), value.strip().strip('"'))
        names = {"-J": "ProxyJump", "-i": "IdentityFile", "-p": "Port", "-l": "User"}
        return self._named(begun, names[flag], value)

    def _named(self, begun: Endpoint, name: str, value: str) -> Endpoint:
        option = name.lower()
        if option in _HARMLESS:
            return begun
        if option == "proxyjump":
            return begun if value.lower() == "none" else replace(begun, jumps=_jumps(value))
        if option == "proxycommand":
            return replace(begun, proxy_command=None if value.lower() == "none" else value)
        if option == "stricthostkeychecking":
            if value.lower() not in _HOST_KEYS:
                raise ValueError("is none of yes, accept-new and no")
            return replace(begun, host_keys=_HOST_KEYS[value.lower()])
        if option in ("userknownhostsfile", "globalknownhostsfile"):
            return replace(begun, known_hosts=begun.known_hosts + tuple(shlex.split(value)))
        if option == "hostkeyalias":
            return replace(begun, host_key_alias=_word(value))
        if option == "identityfile":
            return replace(begun, key_files=(*begun.key_files, value))
        if option == "port":
            return replace(begun, port=_port(value))
        if option == "user":
            return replace(begun, user=_word(value))
        raise ValueError("is an ssh option that commcheck does not know")


def _jumps(text: str) -> tuple[Hop, ...]:
    return tuple(_hop(each.strip()) for each in text.split(","))


def _hop(text: str) -> Hop:
    user, _, rest = text.removeprefix("ssh://").rpartition("@")
    if match := re.fullmatch(r"\[([^\]]+)\](?::(\d+))?|([^:\[\]]+)(?::(\d+))?", rest):
        address, port = match[1] or match[3], match[2] or match[4]
    elif rest.count(":") > 1 and is_address(rest):
        address, port = rest, None
    else:
        raise ValueError("is no jump host; wanted [user@]host[:port]")
    return Hop(_word(address), _port(port) if port else None, _word(user) if user else None)


def _text(value: object) -> str:
    if not isinstance(value, str) or any(ord(char) < 32 for char in value):
        raise ValueError("is no text of one line")
    return value


def _word(value: object) -> str:
    text = str(value) if isinstance(value, int) and not isinstance(value, bool) else value
    if not isinstance(text, str) or not _NAME.fullmatch(text) or text.startswith("-"):
        raise ValueError("is no name or address")
    return text


def _port(value: object) -> int:
    text = str(value)
    if isinstance(value, bool) or not (text.isascii() and text.isdigit() and len(text) < 6):
        raise ValueError("is no port number")
    if not 0 < int(text) < 65536:
        raise ValueError("is no port number (1 to 65535)")
    return int(text)


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
