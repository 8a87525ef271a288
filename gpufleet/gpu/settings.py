"""Settings of the gpu role: data keys `gpu_*`."""

from __future__ import annotations

from typing import Annotated, Any, ClassVar, Literal

from pydantic import AfterValidator, BeforeValidator, Field

from gpufleet.core.settings import RoleSettings
from gpufleet.gpu.layouts import Layout, parse_layout
from gpufleet.gpu.lines import parse_lines

ALL = "all"  # key of a layout for every GPU
MOST_MEGAHERTZ = 10_000  # no GPU's clock is as high


def _parse_layouts(value: Any) -> Any:
    """Layouts by index of a GPU, or by ALL, from text, a list of texts or a mapping of both."""
    if not isinstance(value, dict):
        return {ALL: _layout_of(value)}
    found = {}
    for key, layout in value.items():
        name = str(key)
        if name != ALL and not (name.isdecimal() and len(name) < 3):
            raise ValueError(
                f'has the key {key!r}, not the index of a GPU or "{ALL}"; write layouts as in '
                f'{{"{ALL}": "3g.40gb:1, 1g.10gb:4"}}'
            )
        index = name if name == ALL else str(int(name))
        if index in found:
            raise ValueError(f"names GPU {index} more than once")
        found[index] = _layout_of(layout)
    if not found:
        raise ValueError('must name at least one GPU; "off" turns MIG off')
    return found


def _layout_of(value: Any) -> Layout:
    if isinstance(value, list | tuple) and all(isinstance(part, str) for part in value) and value:
        return parse_layout(",".join(value))
    if not isinstance(value, str):
        raise ValueError(
            'must be text such as "1g.10gb:7", a list such as ["3g.40gb", "1g.10gb:4"], or a '
            'mapping such as {0: "1g.10gb:7", 1: "off"}'
        )
    return parse_layout(value)


def _parse_clocks(value: Any) -> Any:
    """Two numbers of a list or of the text `1000,1400`; one number stands for both."""
    if value == "default":
        return value
    parts = value.split(",") if isinstance(value, str) else value
    try:
        numbers = [parts, parts] if isinstance(parts, int) else list(parts or ())
        low, high = (int(number) for number in numbers)
    except (TypeError, ValueError):
        raise ValueError('must be [lowest, highest] in MHz, or "default"') from None
    if not 0 < low <= high < MOST_MEGAHERTZ:
        raise ValueError("must be [lowest, highest] in MHz, and the lowest comes first")
    return low, high


def _check_lines(value: str) -> str:
    parse_lines(value)
    return value


Layouts = Annotated[
    dict[str, Layout],
    BeforeValidator(_parse_layouts),
    "text, a list of texts, or a mapping by index",
]
Clocks = Annotated[
    tuple[int, int] | Literal["default"],
    BeforeValidator(_parse_clocks),
    'a number, a list of two numbers, or `"default"`',
]
ComputeMode = Literal["default", "exclusive-process", "prohibited"]
Sharing = Literal["none", "time-slicing", "mps", "dra"]
MigStrategy = Literal["mixed", "single"]


class GpuSettings(RoleSettings):
    """How the GPUs of a host are divided and limited. Keys that are not set change nothing."""

    prefix = "gpu_"
    reserved: ClassVar[bool] = False  # inventories have keys such as gpu_model of their own

    mig: Layouts | None = Field(
        None,
        description="MIG profiles with their number, for all GPUs or by index. `off`: no MIG.",
    )
    power_limit: Annotated[int, Field(gt=0)] | Literal["default"] | None = Field(
        None, description="Power limit of each GPU in watts. `default`: the GPU's own."
    )
    clocks: Clocks | None = Field(
        None, description="Lowest and highest clock in MHz. `default`: not locked."
    )
    memory_clocks: Clocks | None = Field(
        None, description="Lowest and highest memory clock in MHz. `default`: not locked."
    )
    compute_mode: ComputeMode | None = Field(
        None, description="Which programs may use a GPU at the same time."
    )
    ecc: bool | None = Field(None, description="ECC of the GPU's memory.")
    allow_reset: bool = Field(
        False,
        description="Reset an idle GPU if a change requires it: of MIG mode on Ampere GPUs, and of "
        "ECC. If the reset is not possible, a reboot completes the change (`node_reboot`).",
    )
    sharing: Sharing | None = Field(
        None,
        description="How pods share a GPU of this node of a cluster. `dra`: pods claim GPUs from "
        "NVIDIA's DRA driver. Not set: as `device_plugin_time_slicing` of the cluster says.",
    )
    replicas: int | None = Field(
        None, ge=2, le=64, description="Pods that share each GPU, or each MIG device, of the node."
    )
    mig_strategy: MigStrategy | None = Field(
        None,
        description="How the cluster advertises the MIG devices of `gpu_mig`. Not set: as "
        "`device_plugin_mig_strategy` of the cluster says, else `mixed`.",
    )
    lines: Annotated[str, AfterValidator(_check_lines)] | None = Field(
        None,
        description="Layout and settings of each GPU, instead of other keys; `gpufleet upgrade` "
        "sets it for a host that it has drained.",
    )

    @property
    def manages(self) -> bool:
        """True if a key asks for a state of the GPUs."""
        asked = (self.mig, self.power_limit, self.clocks, self.memory_clocks, self.compute_mode)
        return any(key is not None for key in (*asked, self.ecc, self.lines))

    @property
    def of_lines(self) -> GpuSettings:
        """The settings with the layouts of `lines` and no other key; the same without `lines`."""
        if self.lines is None:
            return self
        gpus = parse_lines(self.lines)
        layouts = {str(n): parse_layout(each["mig"]) for n, each in gpus.items() if "mig" in each}
        others = dict.fromkeys(("power_limit", "clocks", "memory_clocks", "compute_mode", "ecc"))
        return self.model_copy(update={"mig": layouts or None, **others})

    def layout_of(self, index: int) -> Layout | None:
        """The wanted MIG layout of a GPU, or None if its layout is not managed."""
        return (self.mig or {}).get(str(index), (self.mig or {}).get(ALL))
