"""pyinfra: an operation a command, as its documentation has it."""

from pathlib import Path

from pyinfra.operations import server

for command in Path(__file__).with_name("commands.txt").read_text().splitlines():
    server.shell(name=command, commands=[command])
