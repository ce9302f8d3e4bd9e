"""pyinfra: all commands in one operation, in one shell."""

from pathlib import Path

from pyinfra.operations import server

commands = Path(__file__).with_name("commands.txt").read_text().splitlines()
server.shell(name="bundle", commands=["; ".join(commands)])
