"""Parses the readings of GPUs from `nvidia-smi -q -x`, from any text.

Not by an XML parser: a GPU that fails puts error lines between the elements.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping
from typing import Any

from gpufleet.facts.health import GpuHealth

# The elements below <gpu> of each reading, whose names differ by driver. The first one counts.
# Their names are from output of drivers 418 to 580.
TEXT_READINGS = {
    "model": ("product_name",),
    "uuid": ("uuid",),
    "vbios": ("vbios_version",),
    "persistence": ("persistence_mode",),
    "mig_mode": ("mig_mode/current_mig",),
    "mig_pending": ("mig_mode/pending_mig",),
    "ecc_mode": ("ecc_mode/current_ecc",),
    "ecc_pending": ("ecc_mode/pending_ecc",),
    "recovery_action": ("gpu_recovery_action",),
    "fabric_state": ("fabric/state",),
    "fabric_status": ("fabric/status",),
    "fabric_bandwidth": ("fabric/health/bandwidth",),
}
FLAG_READINGS = {
    "sram_threshold_exceeded": ("ecc_errors/aggregate/sram_threshold_exceeded",),
    "memory_unrepairable": ("ecc_errors/unrepairable_memory",),
    "channel_repair_pending": ("ecc_errors/channel_repair_pending",),
    "tpc_repair_pending": ("ecc_errors/tpc_repair_pending",),
    "remap_pending": ("remapped_rows/remapped_row_pending",),
    "remap_failed": ("remapped_rows/remapped_row_failure",),
    "retirement_pending": ("retired_pages/pending_retirement", "retired_pages/pending_blacklist"),
    "reset_required": ("gpu_reset_status/reset_required",),
    "fabric_route_unhealthy": ("fabric/health/route_unhealthy",),
}
_HISTOGRAM = "remapped_rows/row_remapper_histogram/row_remapper_histogram"
_PCIE = "pci/pci_gpu_link_info"
NUMBER_READINGS = {
    "remapped_uncorrected": ("remapped_rows/remapped_row_unc",),
    "remap_banks_exhausted": (f"{_HISTOGRAM}_none",),
    "temperature": ("temperature/gpu_temp",),
    "memory_temperature": ("temperature/memory_temp",),
    "power_limit": (
        "gpu_power_readings/current_power_limit",
        "gpu_power_readings/power_limit",
        "power_readings/power_limit",
    ),
    "power_limit_default": (
        "gpu_power_readings/default_power_limit",
        "power_readings/default_power_limit",
    ),
    "utilization": ("utilization/gpu_util",),
    "performance_state": ("performance_state",),
    "pcie_generation": (f"{_PCIE}/pcie_gen/current_link_gen",),
    "pcie_generation_max": (f"{_PCIE}/pcie_gen/max_link_gen",),
    "pcie_width": (f"{_PCIE}/link_widths/current_link_width",),
    "pcie_width_max": (f"{_PCIE}/link_widths/max_link_width",),
    "memory_mib": ("fb_memory_usage/total",),
}
RETIRED_PAGES = (
    "retired_pages/multiple_single_bit_retirement/retired_count",
    "retired_pages/double_bit_retirement/retired_count",
)
# Counters of errors: on Ampere and newer, or else on older GPUs.
ECC_COUNTERS = {
    "corrected": (("sram_correctable", "dram_correctable"), ("single_bit/total",)),
    "uncorrected": (
        ("sram_uncorrectable", "sram_uncorrectable_parity", "sram_uncorrectable_secded",
         "dram_uncorrectable"),
        ("double_bit/total",),
    ),
}  # fmt: skip
# With MIG, the GPU itself does not count the errors since the driver was loaded.
_OF_MIG = "mig_devices/mig_device/ecc_error_count/volatile_count/sram_uncorrectable"
# Temperature and its limit; or else the margin to a limit, and the limit as a margin.
TEMPERATURE_MARGINS = {
    "temperature_margin": (
        ("temperature/gpu_temp_slow_threshold", "temperature/gpu_temp"),
        ("temperature/gpu_temp_tlimit", "temperature/gpu_temp_slow_tlimit_threshold"),
    ),
    "memory_temperature_margin": (
        ("temperature/gpu_temp_max_mem_threshold", "temperature/memory_temp"),
    ),
}
SLOWDOWN_NAMES = (
    "hw_slowdown", "hw_thermal_slowdown", "hw_power_brake_slowdown", "sw_thermal_slowdown",
    "sw_power_cap", "sync_boost",
)  # fmt: skip
SLOWDOWNS = {
    reason: [  # the second is that of drivers before 535
        f"clocks_{word}_reasons/clocks_{word}_reason_{reason}" for word in ("event", "throttle")
    ]
    for reason in SLOWDOWN_NAMES
}

_ELEMENT = re.compile(r"<(/?)(\w+)([^<>]*)>(?:([^<]*)</\2>)?")
_SLOT = re.compile(r"[0-9a-f]{4,8}:[0-9a-f]{2}:[0-9a-f]{2}\.[0-9a-f]", re.IGNORECASE)
_MISSING = re.compile(
    r"\W*(?:N/A|not supported|function not found|not found|unknown error|err!|uninitialized"
    r"|insufficient permissions|requested functionality has been deprecated"
    r"|gpu is lost.*|gpu requires reset.*)?\W*",
    re.IGNORECASE,
)
_LOST = re.compile(r"GPU is lost|GPU requires reset", re.IGNORECASE)
_NUMBER = re.compile(r"P?(-?\d{1,18}(?:\.\d{1,18})?)")
_UNREADABLE = re.compile(
    rf"Unable to determine the device handle for gpu.*?({_SLOT.pattern}): *(.+)", re.IGNORECASE
)
_TRUE, _FALSE = ("yes", "true"), ("no", "false")
MAX_READING = 200  # characters of a text from a host
Elements = Mapping[str, str]  # path below <gpu>, joined by / -> text


def element_names() -> str:
    """The names of the elements that are read, as alternatives of a regular expression."""
    tables = (TEXT_READINGS, FLAG_READINGS, NUMBER_READINGS)
    paths = [path for table in tables for several in table.values() for path in several]
    paths += [*RETIRED_PAGES, "ecc_errors/volatile", "gpu"]
    paths += [_OF_MIG]  # others of MIG's devices have names of a GPU's elements, and are not read
    paths += [path for groups in ECC_COUNTERS.values() for group in groups for path in group]
    paths += [path for pairs in TEMPERATURE_MARGINS.values() for pair in pairs for path in pair]
    paths += [path for several in SLOWDOWNS.values() for path in several]
    return "|".join(sorted({name for path in paths for name in path.split("/")}))


def read_gpus(lines: Iterable[str]) -> tuple[GpuHealth, ...]:
    """The GPUs in the output of nvidia-smi, by slot. Raises nothing."""
    gpus: dict[str, GpuHealth] = {}
    for line in (lines := list(lines)):
        if match := _UNREADABLE.match(line.strip()):
            gpus[pci_slot(match[1])] = GpuHealth(pci_slot(match[1]), trouble=match[2][:MAX_READING])
    for name, elements in _elements(lines):
        if _SLOT.fullmatch(name):
            gpus[pci_slot(name)] = _gpu(pci_slot(name), elements)
    return tuple(gpus[slot] for slot in sorted(gpus))


def pci_slot(text: str) -> str:
    """`00000000:17:00.0` of NVML, and `0000:17:00` of the kernel's log, as sysfs writes it."""
    domain, _, rest = text.lower().partition(":")
    domain = domain[-4:] if domain[:-4].strip("0") == "" else domain
    return f"{domain}:{rest}" if "." in rest else f"{domain}:{rest}.0"


def _elements(lines: Iterable[str]) -> Iterator[tuple[str, Elements]]:
    """The address of each <gpu>, and the texts of its elements."""
    address, path = "", list[str]()
    found: dict[str, str] = {}
    for closing, name, attributes, text in (
        match.groups() for line in lines for match in _ELEMENT.finditer(line)
    ):
        if name == "gpu" and attributes:
            address, path, found = attributes.partition('"')[2].partition('"')[0], [], {}
        elif name == "gpu":
            yield address, found
            address, path, found = "", [], {}
        elif text is not None:
            key = "/".join((*path, name))
            if key == _OF_MIG and (count := _number(text.strip())) is not None:
                found[key] = str(count + (_number(found.get(key)) or 0))
            else:
                found.setdefault(key, text.strip())
        elif not closing:
            path.append(name)
        elif name in path:
            del path[path.index(name) :]
    yield address, found


def _gpu(slot: str, elements: Elements) -> GpuHealth:
    """The readings of one GPU."""
    values: dict[str, Any] = {}
    values |= {field: _first(elements, paths) for field, paths in TEXT_READINGS.items()}
    values |= {field: _flag(_first(elements, paths)) for field, paths in FLAG_READINGS.items()}
    values |= {field: _number(_first(elements, paths)) for field, paths in NUMBER_READINGS.items()}
    values |= {field: _margin(elements, pairs) for field, pairs in TEMPERATURE_MARGINS.items()}
    for kind, groups in ECC_COUNTERS.items():
        sums = [_sum(elements, [f"ecc_errors/volatile/{path}" for path in each]) for each in groups]
        values[f"ecc_volatile_{kind}"] = next((each for each in sums if each is not None), None)
    if values["ecc_volatile_uncorrected"] is None:
        values["ecc_volatile_uncorrected"] = _number(_first(elements, [_OF_MIG]))
    lost = next(filter(None, map(_LOST.match, elements.values())), None)
    return GpuHealth(
        slot=slot,
        trouble=lost.string[:MAX_READING] if lost else "",
        retired_pages=_sum(elements, RETIRED_PAGES),
        slowdowns=_slowdowns(elements),
        **values,
    )


def _first(elements: Elements, paths: Iterable[str]) -> str | None:
    """The first text of these elements that is available."""
    texts = (elements.get(path, "") for path in paths)
    return next((text[:MAX_READING] for text in texts if not _MISSING.fullmatch(text)), None)


def _flag(text: str | None) -> bool | None:
    word = (text or "").lower()
    return True if word in _TRUE else False if word in _FALSE else None


def _number(text: str | None) -> int | None:
    """The number that a text begins with, rounded: `72.00 W`, `16x`, `P0`."""
    match = _NUMBER.match(text or "")
    return round(float(match[1])) if match else None


def _sum(elements: Elements, paths: Iterable[str]) -> int | None:
    counts = [_number(_first(elements, [path])) for path in paths]
    known = [count for count in counts if count is not None]
    return sum(known) if known else None


def _margin(elements: Elements, pairs: Iterable[tuple[str, str]]) -> int | None:
    for above, below in pairs:
        one, other = _number(_first(elements, [above])), _number(_first(elements, [below]))
        if one is not None and other is not None:
            return one - other
    return None


def _slowdowns(elements: Elements) -> frozenset[str] | None:
    """The active reasons for lower clocks."""
    texts = {reason: _first(elements, paths) for reason, paths in SLOWDOWNS.items()}
    if not any(texts.values()):
        return None
    return frozenset(reason for reason, text in texts.items() if text == "Active")
