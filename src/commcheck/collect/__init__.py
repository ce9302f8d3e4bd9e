"""Reaching hosts: the only part of commcheck that talks to them."""
