"""The job's processes in /proc: the device they hold, words and variables, their state."""

from __future__ import annotations

from commcheck.demo.job import local_ranks, variables, words
from commcheck.demo.parts import Entries, File, Link
from commcheck.demo.state import HostState


def entries(host: HostState) -> Entries:
    """Of every rank."""
    for local, pid in local_ranks(host):
        place = f"proc/{pid}"
        environ = "".join(f"{name}={value}\0" for name, value in variables(host, local).items())
        is_stopped = host.job is not None and local in host.job.stopped
        state = "T (stopped)" if is_stopped else "S (sleeping)"
        yield File(f"{place}/environ", environ)
        yield File(f"{place}/cmdline", "".join(f"{word}\0" for word in words(host)))
        yield File(f"{place}/status", f"Name:\tpython3\nState:\t{state}\nUid:\t1000\t1000\n")
        yield Link(f"{place}/fd/17", "dev/nvidia-uvm")
