"""``python -m commcheck``: the command where its script is not on PATH."""

from commcheck.cli import entry

if __name__ == "__main__":
    entry()
