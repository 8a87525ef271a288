"""Parses the health of a host's GPUs, from any text: readings, links, the kernel's log."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from dataclasses import replace
from itertools import takewhile
from typing import Literal

from gpufleet.facts.health import GpuHealth, HostHealth, KernelEvent
from gpufleet.facts.sections import split_records
from gpufleet.facts.sections.readings import MAX_READING, pci_slot, read_gpus

_GPU = re.compile(r"GPU \d+: .*\(UUID: (GPU-[-\w]+)\)")
_LINK = re.compile(r"Link \d+: *(?:(\d+(?:\.\d+)?) GB/s|<?inactive>?)", re.IGNORECASE)
_RECOVERIES = re.compile(
    r"Link \d+: *(?:recovery|link recovery failed) (?:errors|events): *(\d{1,18})\b", re.IGNORECASE
)
# Instead of the links of a GPU without an active one.
_ALL_DOWN = re.compile(
    r"(?:NVML: *)?Unable to retrieve NVLink information as all links are inactive", re.IGNORECASE
)
_EVENT = re.compile(
    r"(?:\[ *(?P<time>\d{1,12})(?:\.\d+)?\])?.*?(?P<kind>NVRM: Xid|: SXid) \((?:PCI:)?"
    r"(?P<slot>[0-9a-f]{4,8}:[0-9a-f]{2}:[0-9a-f]{2}(?:\.[0-9a-f])?)"
    r"[^)]*\): *(?P<code>\d{1,6}), *(?P<text>.*)",
    re.IGNORECASE,
)
# Of an SXid whose details are in further lines, or that was corrected.
_NO_ERROR = re.compile(r"Data \{|Severity \d|Correctable,", re.IGNORECASE)
_INFOROM = re.compile(r"WARNING: infoROM is corrupted at gpu +([0-9a-f:.]{7,16})", re.IGNORECASE)
_SMI_ERROR = re.compile(
    r"\w.*(?:failed|error|unable|lost|reset|mismatch|corrupted|no devices)", re.I
)
LAST_TIME = 253_402_300_799  # the last second of the year 9999
LATE_LOG = 100  # seconds: the log that begins later does not reach back to the boot
TIMEOUT_CODES = ("", "124", "137")  # exit codes of timeout; "": it was ended with all that read it
READ_CODES = ("0", "14")  # exit codes with all readings; 14: an InfoROM is corrupted
SMI_SILENT = "it did not answer within 20 s"


def parse_health(lines: Sequence[str], clock: int) -> HostHealth:
    """The health of a host. `clock`: the time of the host, in seconds since 1970. Raises nothing:
    a text that it does not understand is not available."""
    records: dict[str, str] = {}
    logged = []
    for word, rest in split_records(lines):
        if word == "line":
            logged.append(rest)
        elif word in ("asked", "exit", "uptime", "since"):
            records.setdefault(word, rest)
    uptime, since = _seconds(records.get("uptime")), _seconds(records.get("since"))
    boot = None if uptime is None else clock - uptime
    events = (_event(text, boot) for text in logged)
    return HostHealth(
        gpus=tuple(_with_links(_with_inforoms(read_gpus(lines), lines), lines)),
        error=_error(lines, records.get("exit", "")) if "asked" in records else None,
        events=tuple(event for event in events if event),
        log_since=None if boot is None or since is None else boot + since,
        log_complete=since is not None and since < LATE_LOG,
        read_at=clock,
    )


def _seconds(text: str | None) -> int | None:
    match = re.match(r"\d{1,12}", text or "")
    return int(match[0]) if match else None


def _error(lines: Iterable[str], code: str) -> str:
    """The error of nvidia-smi."""
    if code in READ_CODES:
        return ""
    if code in TIMEOUT_CODES:
        return SMI_SILENT
    output = map(str.strip, takewhile(lambda line: not line.startswith("exit "), lines))
    said = [line for line in output if _SMI_ERROR.match(line)]
    return said[0][:MAX_READING] if said else f"it ended with status {code[:4]}"


def _event(text: str, boot: int | None) -> KernelEvent | None:
    """An XID, or an SXid. Not all SXids name a severity. Other lines are no events."""
    match = _EVENT.match(text)
    if match is None:
        return None
    kind: Literal["xid", "sxid"] = "xid" if "NVRM" in match["kind"].upper() else "sxid"
    if kind == "sxid" and _NO_ERROR.match(match["text"]):
        return None
    time = boot + int(match["time"]) if boot is not None and match["time"] else None
    return KernelEvent(
        kind=kind,
        code=int(match["code"]),
        slot=pci_slot(match["slot"]),
        time=time if time is not None and 0 <= time <= LAST_TIME else None,
        text=match["text"][:MAX_READING],
        fatal=match["text"].lower().startswith("fatal") if kind == "sxid" else None,
    )


def _with_inforoms(gpus: Iterable[GpuHealth], lines: Iterable[str]) -> list[GpuHealth]:
    """The GPUs, also those of which only the warning about their InfoROM is known."""
    found = {gpu.slot: gpu for gpu in gpus}
    warned = [match[1] for line in lines if (match := _INFOROM.match(line.strip()))]
    for slot in map(pci_slot, warned):
        found[slot] = replace(found.get(slot, GpuHealth(slot)), inforom_corrupted=True)
    return [found[slot] for slot in sorted(found)]


def _with_links(gpus: Iterable[GpuHealth], lines: Iterable[str]) -> Iterable[GpuHealth]:
    """The GPUs with the counts of `nvidia-smi nvlink -s` and `-e`, which lists no links without
    errors."""
    counts: dict[str, dict[str, int]] = {}
    of_gpu: dict[str, int] = {}
    for line in map(str.strip, lines):
        if named := _GPU.match(line):
            of_gpu = counts.setdefault(named[1], {})
            of_gpu["lists"] = of_gpu.get("lists", 0) + 1
        elif link := _LINK.match(line):
            key = "active" if link[1] else "inactive"
            of_gpu[key] = of_gpu.get(key, 0) + 1
        elif errors := _RECOVERIES.match(line):
            of_gpu["recoveries"] = of_gpu.get("recoveries", 0) + int(errors[1])
        elif _ALL_DOWN.match(line):
            of_gpu["down"] = 1
    for gpu in gpus:
        links = counts.get(gpu.uuid or "", {})
        if not links.get("active") and not links.get("inactive"):
            yield replace(gpu, nvlinks_active=0) if links.get("down") and _has_links(gpu) else gpu
            continue
        yield replace(
            gpu,
            nvlinks_active=links.get("active", 0),
            nvlinks_inactive=links.get("inactive", 0),
            nvlink_recoveries=links.get("recoveries", 0) if links["lists"] > 1 else None,
        )


def _has_links(gpu: GpuHealth) -> bool:
    """True if the links of a healthy GPU like this are up: those of a card need a bridge, and MIG
    turns those of an A100 off."""
    on_board = gpu.fabric_state is not None or "SXM" in (gpu.model or "")
    return on_board and gpu.mig_mode != "Enabled"
