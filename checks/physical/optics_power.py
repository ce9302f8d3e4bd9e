"""The optical module is ready, cool, and receives light on every lane.

Why: One lane with little light makes errors that correction mends for a while, then the link loses
packets, flaps, or comes up at half its width. A hot module shuts itself off.
Reads: ``ethtool -m DEV`` (root; it reads the module's own memory). One verdict for each Ethernet
rail.
By hand: ``ethtool -m DEV | grep -iE 'power|temperature|state|alarm'``.
Mend: clean both ends of the fibre, look at the bend, then replace fibre and module one at a time.
Heat: look at the cage's airflow and blanking panels. A module in ModuleFault has to be replaced.
On the switch: transmit power of the same lane at the other end tells fibre from module.
Healthy though odd: ``ethtool`` prints eight lanes of every OSFP and QSFP-DD module and four of
every QSFP28; a module with fewer shows the rest with its lasers off and without light, and they are
not judged. Copper (DAC) has no power readings and is not judged. ``ethtool`` 6.1 shows the
flags of a CMIS lane one lane too late, and flags stay until somebody reads them, so the reading
counts and a flag alone is a warning. Beyond the module's own warning threshold a link still runs,
outside of what is guaranteed (SFF-8472): that is a warning, beyond its alarm threshold it fails.
"""

from __future__ import annotations

import math

from commcheck.applies import ethernet_port_owner
from commcheck.check import Check, Nothing, failed, limit, not_applicable, passed, reads, warned
from commcheck.formats.ethtool_module import ETHTOOL_MODULE, EthtoolModule
from commcheck.lazy import dataclass
from commcheck.model import Cause, Rail, Remedy, Verdict, Words


@dataclass(frozen=True, slots=True)
class Seen:
    """The module; None where the cage is empty or does not answer."""

    module: EthtoolModule | None = reads(ETHTOOL_MODULE)


@dataclass(frozen=True, slots=True)
class Limits:
    """Where the module does not print its own thresholds."""

    rx_low_dbm: float = limit(
        -10.0, unit="dBm", source="IEEE 802.3 SR and DR receivers need more than about -8 to -10"
    )
    lane_spread_db: float = limit(
        5.0, unit="dB between lanes", source="own default: lanes of one module differ by 1 or 2"
    )


CLEAN = Remedy(
    command="ethtool -m {netdev}",
    effect=Words(
        "Shows the power of each lane (root). Then clean both ends of the fibre, replace fibre and "
        "module, one at a time.",
        "显示各通道光功率（需 root）。随后清洁光纤两端，再逐件更换光纤与光模块。",
    ),
    precondition=Words(
        "Reading is free; unplugging drops the link: host drained.",
        "读取无影响；拔插会断链：主机需已排空。",
    ),
)
COOL = Remedy(
    command="",
    effect=Words(
        "Look at the airflow around the cage: fans, blanking panels, dust; then replace the "
        "module.",
        "检查端口周围散热：风扇、挡板、积灰；仍异常则更换模块。",
    ),
    precondition=Words("Host drained before anything is pulled.", "拔插前主机已排空。"),
)
REPLACE = Remedy(
    command="",
    effect=Words("Replace the module.", "更换光模块。"),
    precondition=Words("Host drained: the link is down then.", "主机已排空：链路会断开。"),
)

FAULT = Cause(
    slug="module-fault",
    title=Words("Module is not ready", "光模块未就绪"),
    meaning=Words(
        "The module reports a fault of its own or did not come up.",
        "光模块自身报告故障或未能启动。",
    ),
    remedies=(REPLACE,),
)
DARK = Cause(
    slug="module-rx-power-low",
    title=Words("Too little light on a lane", "通道接收光功率过低"),
    meaning=Words(
        "A lane receives too little light: a dirty connector, a broken or bent fibre, or a dying "
        "transmitter at the other end.",
        "某通道接收光功率不足：连接器脏污、光纤断裂或弯折，或对端发射器老化。",
    ),
    remedies=(CLEAN,),
)
HOT = Cause(
    slug="module-hot",
    title=Words("Module is too hot", "光模块过热"),
    meaning=Words(
        "The module is above its own limit: beyond its alarm it makes errors or shuts off, beyond "
        "its warning it is close to that.",
        "光模块超过自身温度限值：超过告警门限将产生误码或关断，超过预警门限则已接近。",
    ),
    remedies=(COOL, REPLACE),
)
FLAGGED = Cause(
    slug="module-alarm",
    title=Words("Module raises an alarm", "光模块告警"),
    meaning=Words(
        "The module flags a value, while the values that it prints are within their limits.",
        "光模块上报告警，但其打印的数值仍在限值内。",
    ),
    remedies=(CLEAN,),
)


def judge(seen: Seen, rail: Rail, _want: Nothing, limits: Limits) -> Verdict:
    """State, then temperature, then each lane's light, then flags alone."""
    module = seen.module
    named = f"{rail.label} ({rail.netdev})"
    if module is None:
        return not_applicable(f"{named} has no module that answers")
    floor = limits.rx_low_dbm if module.rx_low_alarm_dbm is None else module.rx_low_alarm_dbm
    light = _lanes_in_use(module, floor)
    measured: dict[str, object] = {
        "part_number": module.part_number,
        "temperature_c": module.temperature_c,
        "rx_dbm": [None if math.isinf(dbm) else dbm for dbm in light.values()],
    }
    state = f"{named} has {module.part_number or module.identifier}"
    places = {"netdev": str(rail.netdev)}
    if module.state is not None and module.state != "ModuleReady":
        why = f": {module.fault}" if module.fault else ""
        reason = f"{state} in state {module.state}{why}, want ModuleReady"
        return failed(FAULT, reason, measured=measured)
    if hot := _too_hot(module):
        return failed(HOT, f"{state}, {hot}", measured=measured)
    if dark := _dark_lanes(module, light, floor, limits):
        return failed(DARK, f"{state}, {dark}", measured=measured, **places)
    if warm := _warm(module):
        return warned(HOT, f"{state}, {warm}", measured=measured)
    if dim := _dim_lanes(module, light):
        return warned(DARK, f"{state}, {dim}", measured=measured, **places)
    raised = sorted({flag for flag, _ in module.flags if flag.endswith("alarm")})
    if raised:
        return warned(FLAGGED, f"{state}, which flags {raised[0]}", measured=measured, **places)
    if not light:
        return not_applicable(f"{state}, which has no power readings: copper")
    darkest = f"{min(light.values()):g} dBm on its darkest lane of {len(light)}"
    return passed(f"{state}, {darkest}", measured=measured)


def _too_hot(module: EthtoolModule) -> str:
    if module.temperature_c is None:
        return ""
    limit_c = module.temperature_alarm_c
    if limit_c is None:
        flagged = ("module temperature high alarm", 0) in module.flags
        return f"{module.temperature_c:g} C, above its own alarm" if flagged else ""
    if module.temperature_c > limit_c:
        return f"{module.temperature_c:g} C, want at most {limit_c:g}"
    return ""


def _warm(module: EthtoolModule) -> str:
    now_c, limit_c = module.temperature_c, module.temperature_warning_c
    if now_c is None or limit_c is None or now_c <= limit_c:
        return ""
    return f"{now_c:g} C, above its warning at {limit_c:g} C"


def _dim_lanes(module: EthtoolModule, light: dict[int, float]) -> str:
    limit_dbm = module.rx_low_warning_dbm
    dim = [each for each in light.items() if limit_dbm is not None and each[1] < limit_dbm]
    return f"{_lanes(dim)}, below the module's warning at {limit_dbm:g} dBm" if dim else ""


def _lanes_in_use(module: EthtoolModule, floor: float) -> dict[int, float]:
    """Received power by lane, without a half whose lasers are off and that sees no light.

    ethtool prints eight lanes for each CMIS module (``CMIS_CHANNELS_PER_BANK`` of its cmis.c) and
    four for each QSFP28: a DR4 fills half of them, a DR1 one. A lane that died is no whole half,
    and the link, which is up here, would be down without light on each lane that it uses.
    """
    sends = {lane for lane, ma in module.bias_ma if ma > 0}
    sends.update(lane for lane, dbm in module.tx_dbm if dbm >= floor)
    lanes = list(module.rx_dbm)
    while len(lanes) > 1 and len(lanes) % 2 == 0:
        halves = lanes[: len(lanes) // 2], lanes[len(lanes) // 2 :]
        used = [half for half in halves if any(n in sends or dbm >= floor for n, dbm in half)]
        if len(used) != 1:
            break
        (lanes,) = used
    return dict(lanes)


def _dark_lanes(
    module: EthtoolModule, light: dict[int, float], floor: float, limits: Limits
) -> str:
    dark = [(lane, dbm) for lane, dbm in light.items() if dbm < floor]
    if dark:
        return f"{_lanes(dark)}, want at least {floor:g} dBm"
    most = max(light.values(), default=0.0)
    weak = [(lane, dbm) for lane, dbm in light.items() if dbm < most - limits.lane_spread_db]
    if weak and any("rx power low" in flag for flag, _ in module.flags):
        return f"{_lanes(weak)}, want within {limits.lane_spread_db:g} dB of the best lane"
    return ""


def _lanes(lanes: list[tuple[int, float]]) -> str:
    if all(math.isinf(dbm) for _, dbm in lanes):
        return f"no light on lane {', '.join(str(lane) for lane, _ in lanes)}"
    return ", ".join(f"lane {lane} at {dbm:g} dBm" for lane, dbm in lanes)


CHECK = Check(
    id="physical.optics-power",
    title=Words("Optics are ready and see light", "光模块就绪且光功率正常"),
    subject=Rail,
    each_port=True,
    seen=Seen,
    limits=Limits,
    judge=judge,
    needs=("physical.nic-link-up",),
    causes=(FAULT, DARK, HOT, FLAGGED),
    platforms=frozenset({"gpu-roce"}),
    not_applicable=ethernet_port_owner,
)
