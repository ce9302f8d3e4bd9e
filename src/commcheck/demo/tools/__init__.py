"""The tools of the embedded fleet, one file each: what they print, from the state of a host.

Each function is a template that was derived from recordings; a test renders their facts and
compares byte for byte.
"""
