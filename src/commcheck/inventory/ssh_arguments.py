"""The arguments of ``ssh`` that a variable of the inventory holds: those on where and as whom.

What tunes, chats and forwards is passed over. What we do not know is refused, never ignored.
"""

from __future__ import annotations

import re
import shlex
from collections.abc import Iterator
from dataclasses import replace
from typing import Final

from commcheck.inventory.declared import quoted
from commcheck.inventory.ranges import is_address
from commcheck.lazy import dataclass, regex

_NAME: Final = regex(r"[^\s\x00-\x1f\x7f]{1,255}")
HOST_KEYS: Final = {
    "yes": "strict",
    "true": "strict",
    "accept-new": "accept-new",
    "no": "insecure",
    "off": "insecure",
    "false": "insecure",
}
"""By value of StrictHostKeyChecking what it means here."""
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
class Arguments:
    """What they say; each field as ``Endpoint`` has it."""

    port: int | None = None
    user: str | None = None
    key_files: tuple[str, ...] = ()
    jumps: tuple[Hop, ...] | None = None
    proxy_command: str | None = None
    host_keys: str | None = None
    known_hosts: tuple[str, ...] = ()
    host_key_alias: str | None = None
    settled: frozenset[str] = frozenset()  # options that were said, and that ssh takes once

    def then(self, text: str) -> Arguments:
        """With those of a text, which come after them. Raises ``ValueError``: what, and why not."""
        try:
            words = shlex.split(text)
        except ValueError as error:
            raise ValueError(f"{quoted(text)} {str(error).lower()}") from None
        said = self
        for flag, value in _pairs(words):
            try:
                said = _with(said, *_option(flag, value))
            except ValueError as error:
                raise ValueError(f"{quoted(f'{flag} {value}')} {error}") from None
        return said


def _pairs(words: list[str]) -> Iterator[tuple[str, str]]:
    waiting = iter(words)
    for each in waiting:
        flag, value = each[:2], each[2:]
        if _HARMLESS_FLAGS.fullmatch(each):
            continue
        if flag not in ("-J", "-o", "-i", "-p", "-l", "-F"):
            raise ValueError(f"{quoted(each)} is an ssh argument that commcheck does not know")
        value = value or next(waiting, "")
        if not value:
            raise ValueError(f"{quoted(each)} lacks its value")
        yield flag, value


def _option(flag: str, value: str) -> tuple[str, str]:
    """The option that a flag stands for, in lower case, and its value."""
    if flag == "-F":
        named = f"name the file for all hosts: --ssh-config {shlex.quote(value)}"
        raise ValueError(f"is not followed for some hosts alone; {named}")
    if flag == "-o":
        name, _, value = value.strip().partition("=" if "=" in value else " ")
        return name.strip().lower(), value.strip().strip('"')
    return {"-J": "proxyjump", "-i": "identityfile", "-p": "port", "-l": "user"}[flag], value


def _with(said: Arguments, option: str, value: str) -> Arguments:
    """With one option more. Of those that are said again the first counts, as for ssh."""
    if option in _HARMLESS or option in said.settled:
        return said
    found = _named(said, option, value)
    if option == "identityfile":
        return found
    # Of the two ways through another host, too; only "ProxyJump none" leaves the other open.
    is_way = option == "proxycommand" or bool(found.jumps)
    return replace(found, settled=said.settled | {option, *(_WAYS if is_way else ())})


_WAYS: Final = ("proxyjump", "proxycommand")


def _named(said: Arguments, option: str, value: str) -> Arguments:
    if option == "proxyjump":
        return replace(said, jumps=() if value.lower() == "none" else jumps(value))
    if option == "proxycommand":
        return replace(said, proxy_command="" if value.lower() == "none" else value)
    if option == "stricthostkeychecking":
        if value.lower() not in HOST_KEYS:
            raise ValueError("is none of yes, accept-new and no")
        return replace(said, host_keys=HOST_KEYS[value.lower()])
    if option in ("userknownhostsfile", "globalknownhostsfile"):
        return replace(said, known_hosts=said.known_hosts + tuple(shlex.split(value)))
    if option == "hostkeyalias":
        return replace(said, host_key_alias=word(value))
    if option == "identityfile":
        return replace(said, key_files=(*said.key_files, value))
    if option == "port":
        return replace(said, port=port(value))
    if option == "user":
        return replace(said, user=word(value))
    raise ValueError("is an ssh option that commcheck does not know")


def without_config(text: str) -> str:
    """Arguments of ssh without ``-F FILE``; one within a ProxyCommand is that command's own."""
    try:
        words = shlex.split(text)
    except ValueError:
        return text  # refused where it is read
    kept = [
        each
        for before, each in zip(["", *words], words, strict=False)
        if not each.startswith("-F") and before != "-F"
    ]
    return text if kept == words else shlex.join(kept)


def jumps(text: str) -> tuple[Hop, ...]:
    """The hops of a list: ``[user@]host[:port]`` or ``ssh://``. Raises ``ValueError``."""
    return tuple(_hop(each.strip()) for each in text.split(","))


def _hop(text: str) -> Hop:
    user, _, rest = text.removeprefix("ssh://").rstrip("/").rpartition("@")
    if match := re.fullmatch(r"\[([^\]]+)\](?::(\d+))?|([^:\[\]]+)(?::(\d+))?", rest):
        address, number = match[1] or match[3], match[2] or match[4]
    elif rest.count(":") > 1 and is_address(rest.partition("%")[0]):
        address, number = rest, None
    else:
        raise ValueError("is no jump host; wanted [user@]host[:port]")
    return Hop(word(address), port(number) if number else None, word(user) if user else None)


def word(value: object) -> str:
    """A name or an address. Raises ``ValueError``."""
    text = str(value) if isinstance(value, int) and not isinstance(value, bool) else value
    if not isinstance(text, str) or not _NAME.fullmatch(text) or text.startswith("-"):
        raise ValueError("is no name or address")
    return text


def port(value: object) -> int:
    """The number of a port. Raises ``ValueError``."""
    text = str(value)
    if isinstance(value, bool) or not (text.isascii() and text.isdigit() and len(text) < 6):
        raise ValueError("is no port number")
    if not 0 < int(text) < 65536:
        raise ValueError("is no port number (1 to 65535)")
    return int(text)
