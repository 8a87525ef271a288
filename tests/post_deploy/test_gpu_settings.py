"""The GPUs: their MIG layout and their settings are those that a run recorded."""

from __future__ import annotations

from collections.abc import Mapping

from gpufleet.core.names import count_noun
from gpufleet.verify.findings import hosts as kinds
from gpufleet.verify.node import CheckedNode

UNIT = "gpufleet-gpus.service"
FIELDS = ("index", "slot", "mig", "pending", "power", "default", "compute", "ecc")


def states(node: CheckedNode) -> dict[str, dict[str, str]]:
    """The state of each GPU, by its slot. Skips the check without a recorded layout."""
    node.need_loaded()
    node.need(node.layouts, "no layout of GPUs is recorded")
    rows = (line.split(", ") for line in node.section("gpu-state").lines)
    known = (dict(zip(FIELDS, row, strict=True)) for row in rows if len(row) == len(FIELDS))
    return {state["slot"].lower()[-len("0000:00:00.0") :]: state for state in known}


def layout(node: CheckedNode, state: Mapping[str, str]) -> str:
    """The layout of a GPU as in /etc/gpufleet-gpus; also a mode that waits, or is empty."""
    if state["mig"] != state["pending"]:
        return f"MIG {state['mig']}, {state['pending']} after a reset"
    boards, index = node.mig_devices, int(state["index"]) if state["index"].isdecimal() else -1
    devices = boards[index] if 0 <= index < len(boards) else []
    return ",".join(sorted(devices)) or ("no instances" if state["mig"] == "Enabled" else "off")


def test_gpu_layout(node: CheckedNode) -> None:
    """Each GPU has the MIG devices of its recorded layout, and its mode does not wait."""
    there = states(node)
    wanted = {slot: words["mig"] for slot, words in node.layouts.items() if "mig" in words}
    node.need(wanted, "the MIG layout is not managed")
    wrong = []
    for slot, profiles in wanted.items():
        found = layout(node, there[slot]) if slot in there else "no GPU"
        if found != ",".join(sorted(profiles.split(","))):
            wrong.append(f"{slot}: {found} instead of {profiles}")
    expected = f"the recorded layout of {count_noun(len(wanted), 'GPU')}"
    node.expect(not wrong, kinds.GPU_LAYOUT, expected, "; ".join(wrong))


def test_gpu_limits(node: CheckedNode) -> None:
    """Power limit, compute mode and ECC of each GPU are the recorded ones."""
    there = states(node)
    wrong = []
    for slot, words in node.layouts.items():
        state = there.get(slot, {})
        power = state.get("default", "") if words.get("power") == "default" else words.get("power")
        values = {
            "power": (state.get("power", "").partition(".")[0], (power or "").partition(".")[0]),
            "compute": (state.get("compute", ""), words.get("compute", "")),
            "ecc": (
                {"Enabled": "1", "Disabled": "0"}.get(state.get("ecc", ""), ""),
                words.get("ecc", ""),
            ),
        }
        wrong += [
            f"{slot}: {key} {found or 'unknown'} instead of {expected}"
            for key, (found, expected) in values.items()
            if expected and found != expected
        ]
    expected = f"the recorded settings of {count_noun(len(node.layouts), 'GPU')}"
    node.expect(not wrong, kinds.GPU_LIMITS, expected, "; ".join(wrong))


def test_gpu_unit(node: CheckedNode) -> None:
    """The unit that makes layout and settings at boot is enabled, and did not fail."""
    node.need_loaded()
    node.need(node.layouts, "no layout of GPUs is recorded")
    values = node.services.get(UNIT, {})
    found = f"{values.get('ActiveState')}, {values.get('UnitFileState')}"
    right = found == "active, enabled"
    node.expect(right, kinds.SERVICE_CHECK, f"{UNIT} active and enabled", found, unit=UNIT)
