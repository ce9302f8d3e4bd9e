"""A search among hosts of their own that is killed half way goes on where it was."""

from __future__ import annotations

import shlex
import signal
import sys
from pathlib import Path
from typing import Final

import pytest

from tests.jobs.netns import HEAD, IDLE_GPUS, NETWORK, Net, until, why_not

pytestmark = [pytest.mark.slow, pytest.mark.timeout(240)]

CHECK: Final = "physical.collective-pairs"
GPUS: Final = tuple(f"gpu-{letter}" for letter in "abcdef")
BAD: Final = "gpu-c"
LAUNCHED: Final = """
import sys, time
from pathlib import Path
from commcheck.jobs.reading import Rank
from commcheck.jobs.simulate import Link, print_nccl_tests, simulate

folder, names, words = Path(sys.argv[1]), eval(sys.argv[2]), sys.argv[3:]
hosts = [names[place.partition(":")[0]] for place in words[words.index("-H") + 1].split(",")]
with (folder / "begun").open("a") as begun:
    begun.write("+".join(hosts) + "\\n")
time.sleep(1.0)
ranks = [Rank(n, host, n % 2, "NVIDIA H100", 0, 100 + n, "0000:01:00.0") for n, host in
         enumerate(host for host in hosts for _ in range(2))]
link = Link(alpha_us=30, beta_gbytes=20 if "{bad}" in hosts else 95)
print(print_nccl_tests(simulate("all_gather", ranks, [1 << n for n in range(26, 32)], link)))
"""


@pytest.fixture
def net(tmp_path: Path) -> Net:
    reason = why_not()
    if reason:
        pytest.skip(reason)
    net = Net(tmp_path, gpus=GPUS)
    net.accelerators("0x10de", "0x030200", 2)
    net.tool("nvidia-smi", IDLE_GPUS)
    net.tool("all_gather_perf", "exit 1")
    (tmp_path / "launched.py").write_text(LAUNCHED.replace("{bad}", BAD))
    names = {address: name for name, address in net.addresses.items()}
    words = [sys.executable, str(tmp_path / "launched.py"), str(tmp_path), repr(names)]
    version = 'if [ "$1" = --version ]; then echo "mpirun (Open MPI) 4.1.5"; exit; fi'
    net.tool("mpirun", f'{version}\nexec {shlex.join(words)} "$@"')
    return net


def begun(net: Net) -> int:
    """How many runs were launched."""
    path = net.folder / "begun"
    return len(path.read_text().splitlines()) if path.exists() else 0


def ended(net: Net) -> int:
    """How many runs are in the folder of the newest run."""
    frames = net.folder.glob(f"reports/latest/frames/{HEAD}.ndjson")
    return sum(each.read_text().count(f'"{CHECK} run ') for each in frames)


def test_finished_runs_are_not_launched_again(net: Net) -> None:
    variables = {
        "commcheck_platform": "gpu-roce",
        "commcheck_expected_busbw": {"pairs": 95.0},
        "commcheck_mpi_interface": f"{NETWORK}.0/24",
    }
    with net.running():
        first = net.commcheck(CHECK, variables)
        until(lambda: ended(net) >= 3, 60)  # the first round has ended
        until(lambda: begun(net) > ended(net), 30)  # and the next goes on
        first.send_signal(signal.SIGKILL)
        first.wait()
        known, cut = ended(net), begun(net)
        assert 3 <= known < cut
        until(lambda: not net.processes("sleep", "mpirun"), 40)
        cut = begun(net)
        net.commcheck(CHECK, variables, "--resume", "last").wait(120)
    # What was cut is launched again, and nothing else.
    assert begun(net) - ended(net) == cut - known
    group, *hosts = net.verdicts(CHECK)
    assert (group["subject"], group["status"], group["hosts"]) == ("@gpu", "fail", [BAD])
    assert {each["host"] for each in hosts if each["status"] != "pass"} == {BAD}
