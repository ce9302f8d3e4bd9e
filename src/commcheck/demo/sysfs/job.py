"""The job's processes in /proc: the device they hold, words and variables, their state."""

from __future__ import annotations

from commcheck.demo.job import local_ranks, variables, words
from commcheck.demo.parts import Entries, File, Link
from commcheck.demo.state import HostState

_NO_CAPS = "CapEff:\t0000000000000000\n"


def entries(host: HostState) -> Entries:
    """Of every rank."""
    for local, pid in local_ranks(host):
        place = f"proc/{pid}"
        environ = "".join(f"{name}={value}\0" for name, value in variables(host, local).items())
        is_stopped = host.job is not None and local in host.job.stopped
        state = "T (stopped)" if is_stopped else "S (sleeping)"
        yield File(f"{place}/environ", environ)
        yield File(f"{place}/cmdline", "".join(f"{word}\0" for word in words(host)))
        status = f"Name:\tpython3\nState:\t{state}\nUid:\t1000\t1000\nNSpid:\t{pid}\n{_NO_CAPS}"
        yield File(f"{place}/status", status)
        memlock = host.job.memlock if host.job is not None else ""
        limit = f"{memlock:20} {memlock:20} bytes"
        yield File(f"{place}/limits", f"Max locked memory         {limit}     \n")
        yield Link(f"{place}/root", ".")
        device = f"davinci{host.npus[local].number}" if host.npus else "nvidia-uvm"
        yield Link(f"{place}/fd/17", f"dev/{device}")
