"""The quality-of-service settings of a port, from the first tool that speaks."""

from __future__ import annotations

from typing import Final

from commcheck.check import FirstOf, first_of
from commcheck.formats.dcb import DCB
from commcheck.formats.mlnx_qos import MLNX_QOS
from commcheck.formats.niccli import NICCLI
from commcheck.formats.qos import Qos

PORT_QOS: Final[FirstOf[Qos]] = first_of(MLNX_QOS, DCB, NICCLI)
