"""``fi_info -p efa``: the EFA devices of a host, each with one domain for each kind of endpoint."""

from __future__ import annotations

import re
from typing import Final

from commcheck.check import Reader
from commcheck.command import Command, Output
from commcheck.errors import CommandFailed, ParseError
from commcheck.formats.lines import whole_lines

TOOL: Final = "fi_info"


def parse(output: Output) -> frozenset[str]:
    """HCA names; none where there is no device or no provider."""
    both = f"{output.text}{output.stderr}"
    if re.search(r"^fi_getinfo: -61\b", both, re.MULTILINE):
        return frozenset()
    if output.rc != 0:
        raise CommandFailed(f"fi_info failed with exit code {output.rc}: {output.complaint}")
    text = output.text
    lines = "\n".join(whole_lines(text, TOOL))
    blocks = re.split(r"^(?=provider: )", lines, flags=re.MULTILINE)[1:]
    names = set()
    for block in blocks:
        domain = re.search(r"^ +domain: ([\w.]+)-(?:rdm|dgrm)$", block, re.MULTILINE)
        if domain is None or not re.search(r"^ +protocol: \w+$", block, re.MULTILINE):
            raise ParseError(TOOL, text, "domain and protocol of each provider")
        names.add(domain[1])
    if not names:
        raise ParseError(TOOL, text, "at least one provider")
    return frozenset(names)


FI_INFO: Final = Reader(tool=TOOL, commands=(Command((TOOL, "-p", "efa")),), parse=parse)
