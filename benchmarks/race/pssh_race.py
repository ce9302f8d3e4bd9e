"""parallel-ssh over the hosts of an INI-like list: every command in turn, or all in one."""

from __future__ import annotations

import sys
from pathlib import Path

from pssh.clients import ParallelSSHClient
from pssh.config import HostConfig


def main(hosts_file: str, key: str, commands_file: str, way: str) -> None:
    """``hosts_file``: address and port a line. ``way``: single or bundle."""
    places = [line.split() for line in Path(hosts_file).read_text().splitlines()]
    commands = Path(commands_file).read_text().splitlines()
    if way == "bundle":
        commands = ["; ".join(commands)]
    configs = [HostConfig(port=int(port), user="root", private_key=key) for _, port in places]
    client = ParallelSSHClient(
        [address for address, _ in places], host_config=configs, pool_size=50
    )
    size = 0
    for command in commands:
        output = client.run_command(command)
        client.join(output)
        size += sum(len(line) + 1 for host in output for line in host.stdout)
    print(f"{size} bytes from {len(places)} hosts")
    if size < 200_000 * len(places):
        sys.exit("some answers are missing")


main(*sys.argv[1:])
