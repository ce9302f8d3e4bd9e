"""Text hygiene: every text of remote or user origin passes here before it is shown or stored.

Remote output is hostile: it may hold terminal sequences, characters XML forbids, bidirectional
overrides, Jenkins attachment markers (a way to publish any file of the build agent), CI console
commands, and secrets of the host's users.
"""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from functools import lru_cache
from itertools import zip_longest
from string import ascii_letters, ascii_lowercase, ascii_uppercase, digits
from typing import Any, AnyStr, Final

from commcheck.command import ANSI
from commcheck.lazy import regex

CAP: Final = 16 * 1024
"""Characters of one text in a report; the whole stays in the run folder."""

MASK: Final = "***"

_FORBIDDEN: Final = regex(
    # All but TAB, LF, U+0020-D7FF, U+E000-FFFD, U+10000-10FFFF is no XML 1.0 character. DEL and
    # the C1 controls are, but terminals obey them (U+009B begins a sequence as ESC [ does).
    "[\x00-\x08\x0b-\x1f\x7f-\x9f\ud800-\udfff\ufffe\uffff]"
)
_BIDI: Final = regex("[\u202a-\u202e\u2066-\u2069]")
_MARKER: Final = regex(r"\[\[(?=(?:ATTACHMENT|PROPERTY)\|)", re.IGNORECASE)


def decode(data: bytes) -> str:
    r"""Bytes as text: UTF-8, and what is none shows as ``\xff``. Never raises."""
    return data.decode("utf-8", "backslashreplace")


def clean(text: str) -> str:
    """A text that is safe in XML, JSON, HTML (escaped) and on a terminal; lines are kept.

    Harmless text comes back unchanged, and cleaning twice is cleaning once.
    """
    return _cleaned_before(text) if len(text) <= _SHORT else _clean(text)


_SHORT: Final = 256
"""Characters: names, labels and reasons are short, and a thousand hosts say the same ones."""


@lru_cache(maxsize=1 << 14)
def _cleaned_before(text: str) -> str:
    return _clean(text)


def _clean(text: str) -> str:
    return mask(_harmless(text))


def _harmless(text: str) -> str:
    if text.isascii() and text.isprintable() and "[[" not in text:
        return text  # most texts: nothing to find for what follows
    if "\r" in text:
        text = text.replace("\r\n", "\n").replace("\r", "\n")
    if "\x1b" in text:
        text = ANSI.sub("", text)
    text = _FORBIDDEN.sub("\ufffd", text)
    text = _BIDI.sub(lambda match: f"<U+{ord(match[0]):04X}>", text)
    if "[[" in text:
        # A zero-width space: the eye sees the same, junit-attachments no longer does.
        text = _MARKER.sub("[[\u200b", text)
    return text


def one_line(text: str, limit: int = 300) -> str:
    """A cleaned text on one line of at most ``limit`` characters, for messages and tables."""
    return _on_one_line(clean(text), limit)


def _on_one_line(text: str, limit: int) -> str:
    line = " ".join(text.split())
    return line if len(line) <= limit else line[: limit - 1] + "…"


def cut(text: str, limit: int = CAP, where: str = "") -> str:
    """At most ``limit`` characters; a last line says how much was left out and where it is."""
    if len(text) <= limit:
        return text
    note = f"\n[... {{}} more characters{f', all of it in {where}' if where else ''}]\n"
    kept = max(0, limit - len(note) - 10)
    return text[:kept] + note.format(len(text) - kept)


# --- consoles of CI systems ---------------------------------------------------------------------

_CONSOLE_COMMAND: Final = regex(r"##(?=(?:vso|teamcity)?\[)", re.IGNORECASE)


def for_console(text: str, limit: int = 300) -> str:
    """One line that no CI console takes for a command.

    Azure Pipelines obeys ``##vso[`` anywhere in a line, GitHub ``::name::`` at its start and
    ``##[name]``, TeamCity ``##teamcity[``.
    """
    return _told(clean(text), limit)


def composed(*parts: str, limit: int = 300) -> str:
    """The same of a line that we put together: no part of it takes the next one for its value.

    Else the reason were masked that is told of a host called ``gpu-key``, or of a file ``passwd``.
    """
    return _told(_harmless("".join(map(clean, parts))), limit)


def _told(text: str, limit: int) -> str:
    line = _CONSOLE_COMMAND.sub("## ", _on_one_line(text, limit))
    return ": :" + line[2:] if line.startswith("::") else line


def columns(text: str) -> str:
    """A line as it is laid out, for people: blanks stay, so that columns do."""
    indent = len(text) - len(text.lstrip(" "))
    cells = [for_console(cell, 2000) for cell in re.split(r"( {2,})", text.strip(" "))]
    gaps = re.findall(r" {2,}", text.strip(" "))
    return " " * indent + "".join(
        cell + gap for cell, gap in zip_longest(cells[::2], gaps, fillvalue="")
    )


# --- secrets ------------------------------------------------------------------------------------

_NAMED: Final = regex(
    # Possessive quantifiers and the look-behind keep this linear on a megabyte of one word.
    r"""(?<![\w.-])(?P<name>[\w.-]++)(?P<quote>\\*+["']|)[ \t]*+(?P<sign>[=:])[ \t]*+""",
    re.ASCII,
)
# A value ends where the text around it goes on: at its own quote, or at one that closes a string
# which began before the name, else JSON would no longer be JSON once it is masked.
# No group is repeated possessively: Pythons before 3.11.5 match those wrongly (gh-106052).
_QUOTED: Final = regex(r""""([^"\\\n\0]*+(?:\\.[^"\\\n\0]*+)*)"?|'([^'\n\0]*+)'?""")
_ESCAPED: Final = regex(r"""\\+["']([^"'\\\n\0]*+)""")
_STRING: Final = {
    '"': regex(r'[^"\\\n\0]*+(?:\\[^\n\0][^"\\\n\0]*+)*'),
    "'": regex(r"[^'\\\n\0]*+(?:\\[^\n\0][^'\\\n\0]*+)*"),
}
_WORD: Final = regex(
    r"""[^\s\0"'\\]*+(?:(?:\\["']?|["'](?![\s,;:)\]}\0]|\Z))[^\s\0"'\\]*+)*""", re.ASCII
)
_ITEM: Final = regex(r"[^\s\0,}\]\[{]*+", re.ASCII)
_LINE: Final = regex(r"""[^\n\0"']*+(?:["'](?![ \t]*+[,:\]}\n\0]|[ \t]*+\Z)[^\n\0"']*+)*""")
_SECRET_NAME: Final = regex(
    r"TOKEN|SECRET|PASSWORD|PASSWD|PASSPHRASE|CREDENTIAL|AUTHORIZATION$|^AWS_|[_.-]AWS_|KEYS?$",
    re.IGNORECASE,
)
_ASCII_UPPER: Final = str.maketrans(ascii_lowercase, ascii_uppercase)
_NAME_CHARACTERS: Final = f"{ascii_letters}{digits}_.-"
_OPEN_NAME: Final = regex(
    # NCCL_ and HCCL_ hold no secrets. P_Key, Q_Key, lkey and rkey are fields of InfiniBand, and
    # rates of training tokens are no tokens.
    r"(?:NCCL_|HCCL_)[\w.-]*|(?:[\w.-]*[_.-])?[PQLR]_?KEYS?|[\w.-]*TOKENS[\w.-]*",
    re.IGNORECASE | re.ASCII,
)
_PRIVATE_KEY: Final = regex(
    # A block whose end was cut off is masked to the end of the text.
    r"-----BEGIN (?P<what>[A-Z0-9 ]{0,40}PRIVATE KEY)-----.*?(?:-----END (?P=what)-----|\Z)",
    re.DOTALL,
)
_USERINFO: Final = regex(r"://[^\s/?#@\0]++@", re.ASCII)
_OPTION: Final = regex(
    # "--hf-token VALUE"; not "--pad-token 0" or "--sort-key x", which are no secrets.
    r"""(?P<option>--(?:token|(?:[a-z0-9]+[_-])*?(?:(?:hf|hub|auth|access|api|bearer)[_-]token
    |secret|password|passwd|passphrase|(?:api|access|auth|secret|private|wandb)[_-]?key))[ \t\0]++)
    (?!-)(?:'[^'\n\0]*+'|"[^"\\\n\0]*+"|[^\s\0"'\\]++)""",
    re.IGNORECASE | re.ASCII | re.VERBOSE,
)
_PLACED: Final = (".yaml", ".yml", ".ini", ".json", ".toml")
_PLACE: Final = regex(r"\d++(?::\d++)?: (?:error|warning): ", re.ASCII)
"""``group_vars/all/secrets.yml:3:5: error: ...`` is a place in a file, and no secret's value."""

_SECRET_WORDS: Final = ("TOKEN", "SECRET", "PASS", "CREDENTIAL", "AUTHORIZATION", "AWS_", "KEY")
"""One of them is in every name that ``_SECRET_NAME`` knows: the others need not be looked at."""

_SUSPECT: Final = (*_SECRET_WORDS, "://")
_SUSPECT_BYTES: Final = tuple(word.encode() for word in _SUSPECT)


def mask(text: str) -> str:
    """The text with values that look secret replaced by ``***``. Linear in the text's length."""
    if not _has_any(_SUSPECT, text.upper()):
        return text
    text = _PRIVATE_KEY.sub(rf"-----BEGIN \g<what>----- {MASK} -----END \g<what>-----", text)
    text = _USERINFO.sub(f"://{MASK}@", text)
    text = _OPTION.sub(rf"\g<option>{MASK}", text)
    return _mask_assignments(text)


def masked(value: object) -> Any:
    """Plain data with the same masked: by the names of mappings, and in what texts hold.

    A secret's name may also stand beside it, as in a pod's ``{name: HF_TOKEN, value: ...}``.
    """
    if isinstance(value, Mapping):
        beside = str(value.get("name", ""))
        return {
            str(key): MASK
            if _holds(key, each) or (key == "value" and _holds(beside, each))
            else masked(each)
            for key, each in value.items()
        }
    if isinstance(value, list | tuple):
        return [masked(each) for each in value]
    if value is None or isinstance(value, bool | int | float):
        return value
    return mask(str(value))


def _holds(name: object, value: object) -> bool:
    is_word = isinstance(value, str | int | float) and not isinstance(value, bool) and value != ""
    return is_word and _is_secret(str(name), ":")


SEEN_BY_ALL: Final = (
    "holds a secret, and ps shows it to everybody there; let the program read it from a file"
)
"""Said of words of a command, and of variables that are set by one."""


def holds_secret(value: object) -> bool:
    """True where something in plain data would be masked."""
    plain = json.loads(json.dumps(value, default=str))
    return bool(masked(plain) != plain)


def mask_bytes(data: bytes) -> bytes:
    """The same for bytes as they come from a host; bytes that are no UTF-8 stay as they are."""
    return _masked_before(data) if len(data) <= _SHORT else _masked_bytes(data)


@lru_cache(maxsize=1 << 14)
def _masked_before(data: bytes) -> bytes:
    return _masked_bytes(data)


def _masked_bytes(data: bytes) -> bytes:
    # A secret is assigned, is in an address, or follows an option: "=", ":" or "--". Of the last
    # only half is looked for: to find no single byte takes a fiftieth of the time.
    if b":" not in data and b"=" not in data and b"-" not in data:
        return data
    if not _has_any(_SUSPECT_BYTES, data.upper()):
        return data
    return mask(data.decode("latin-1")).encode("latin-1")


def _has_any(words: tuple[AnyStr, ...], text: AnyStr) -> bool:
    # Plain searches are many times faster than one expression that ignores case.
    for word in words:  # noqa: SIM110 - any() with a generator takes twice as long
        if word in text:
            return True
    return False


def _mask_assignments(text: str) -> str:
    parts: list[str] = []
    done = 0
    position = 0
    for word in _secret_words(text):
        if word < position:
            continue
        start = position + len(text[position:word].rstrip(_NAME_CHARACTERS))
        match = _NAMED.match(text, start)
        if match is None:
            position = word + 1
            continue
        position = match.end()  # what is no secret may itself hold an assignment
        if not _is_secret(match["name"], match["sign"]):
            continue
        if match["name"].endswith(_PLACED) and _PLACE.match(text, position):
            continue
        start, end = _value(text, match)
        if start < end:
            # A number of JSON becomes a string of JSON.
            bare = match["quote"] in ('"', "'") and start == match.end()
            parts += [text[done:start], f'"{MASK}"' if bare else MASK]
            done = position = end
    return "".join([*parts, text[done:]])


def _secret_words(text: str) -> list[int]:
    """Where a name that could be a secret's has its telling word, in order."""
    # The capitals of other alphabets may be longer, and would shift what follows.
    upper = text.upper() if text.isascii() else text.translate(_ASCII_UPPER)
    found = []
    for word in _SECRET_WORDS:
        at = upper.find(word)
        while at >= 0:
            found.append(at)
            at = upper.find(word, at + 1)
    return sorted(found)


def _value(text: str, match: re.Match[str]) -> tuple[int, int]:
    """Where the value of a name begins and ends, its quotes left out."""
    start = match.end()
    if quoted := _QUOTED.match(text, start):
        return quoted.span(1 if quoted[1] is not None else 2)
    if escaped := _ESCAPED.match(text, start):
        return escaped.span(1)
    before = text[match.start() - 1 : match.start()]
    if match["quote"]:
        form = _ITEM  # "name": 17
    elif before in _STRING:
        form = _STRING[before]  # "NAME=value with blanks"
    elif match["sign"] == ":" or match["name"].upper().endswith("AUTHORIZATION"):
        form = _LINE  # Name: value to the end of the line
    else:
        form = _WORD  # NAME=VALUE
    value = form.match(text, start)
    return value.span() if value else (start, start)


def _is_secret(name: str, sign: str) -> bool:
    if not _SECRET_NAME.search(name) or _OPEN_NAME.fullmatch(name):
        return False
    # "key: value" is a table's heading; "?key=..." is how chat robots are addressed.
    return sign == "=" or name.upper() not in ("KEY", "KEYS")
