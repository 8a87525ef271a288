"""The DCGM fields that the dashboards show: in gpufleet's list, and most in the exporter's own.

Names and units as dcgm-exporter before 4.9.0 has them (reference: NVIDIA/dcgm-exporter,
etc/default-counters.csv).
"""

from __future__ import annotations

UTILISATION = "DCGM_FI_DEV_GPU_UTIL"  # percent of time with a kernel; wrong or absent under MIG
ENGINE_ACTIVE = "DCGM_FI_PROF_GR_ENGINE_ACTIVE"  # the same as a ratio, right under MIG too
SM_ACTIVE = "DCGM_FI_PROF_SM_ACTIVE"  # ratio of the processors that had work
SM_OCCUPANCY = "DCGM_FI_PROF_SM_OCCUPANCY"  # ratio of the warps that were resident
TENSOR_ACTIVE = "DCGM_FI_PROF_PIPE_TENSOR_ACTIVE"  # ratio
DRAM_ACTIVE = "DCGM_FI_PROF_DRAM_ACTIVE"  # ratio
COPY_UTILISATION = "DCGM_FI_DEV_MEM_COPY_UTIL"  # percent
ENCODER = "DCGM_FI_DEV_ENC_UTIL"  # percent
DECODER = "DCGM_FI_DEV_DEC_UTIL"  # percent

MEMORY_USED = "DCGM_FI_DEV_FB_USED"  # MiB
MEMORY_FREE = "DCGM_FI_DEV_FB_FREE"  # MiB

TEMPERATURE = "DCGM_FI_DEV_GPU_TEMP"  # degrees Celsius
MEMORY_TEMPERATURE = "DCGM_FI_DEV_MEMORY_TEMP"  # degrees Celsius, 0 without a sensor
POWER = "DCGM_FI_DEV_POWER_USAGE"  # W
ENERGY = "DCGM_FI_DEV_TOTAL_ENERGY_CONSUMPTION"  # mJ since the driver was loaded
SM_CLOCK = "DCGM_FI_DEV_SM_CLOCK"  # MHz
MEMORY_CLOCK = "DCGM_FI_DEV_MEM_CLOCK"  # MHz
# What every GPU has: a vGPU has no temperature (NVIDIA/gpu-operator #614), a GPU under MIG no
# utilisation (NVIDIA/dcgm-exporter #430; both read 2026-11-28).
REPORTED = SM_CLOCK

PCIE_SENT = "DCGM_FI_PROF_PCIE_TX_BYTES"  # bytes per second: a rate already
PCIE_RECEIVED = "DCGM_FI_PROF_PCIE_RX_BYTES"  # bytes per second
PCIE_REPLAYS = "DCGM_FI_DEV_PCIE_REPLAY_COUNTER"  # a counter
# A rate in MB/s of both directions, although its type is counter (NVIDIA/dcgm-exporter #658).
NVLINK = "DCGM_FI_DEV_NVLINK_BANDWIDTH_TOTAL"

XID = "DCGM_FI_DEV_XID_ERRORS"  # the last XID, 0 if there was no XID
ROWS_UNCORRECTABLE = "DCGM_FI_DEV_UNCORRECTABLE_REMAPPED_ROWS"  # rows remapped after such errors
ROWS_CORRECTABLE = "DCGM_FI_DEV_CORRECTABLE_REMAPPED_ROWS"
REMAP_FAILED = "DCGM_FI_DEV_ROW_REMAP_FAILURE"  # 1: no spare rows left

FIELDS = frozenset(
    value
    for name, value in dict(globals()).items()
    if name.isupper() and isinstance(value, str) and value.startswith("DCGM_FI_")
)
