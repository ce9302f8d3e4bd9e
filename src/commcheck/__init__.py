"""commcheck finds where the communication of a training fleet breaks, from the wire upwards."""

from __future__ import annotations

__version__ = "0.1.0"
