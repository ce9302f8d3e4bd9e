"""What a login costs that does nothing else: paramiko alone, one host after the other.

The yardstick of the sweeps: machines differ, and so does one machine from day to day.
"""

from __future__ import annotations

import sys
from pathlib import Path

import paramiko

from commcheck.inventory.endpoint import endpoint
from commcheck.inventory.load import load


def main(inventory: str, key_file: Path, user: str) -> None:
    """Log in to every host, and out again."""
    key = paramiko.PKey.from_path(key_file)
    hosts = load([inventory], cwd=Path.cwd()).hosts
    for place in map(endpoint, hosts):
        transport = paramiko.Transport((place.address, place.port))
        transport.start_client(timeout=10)
        transport.auth_publickey(user, key)
        transport.close()
    print(f"{len(hosts)} logins")


if __name__ == "__main__":
    main(sys.argv[1], Path(sys.argv[2]), sys.argv[3])
