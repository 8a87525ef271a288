"""An error of a program on a real GPU. The last module, because the error stays in the kernel's
log until the next boot."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest

from tests.gpu.conftest import gpufleet

pytestmark = [
    pytest.mark.gpu,
    pytest.mark.claim(
        "On a real GPU, an XID of a program's own error is read from the kernel's log, and the "
        "doctor does not count it against the GPU.",
        level=8,
    ),
]

WRITES_BEYOND_ITS_MEMORY = r"""
import ctypes
ptx = (b".version 7.0\n.target sm_70\n.address_size 64\n.visible .entry f() {\n"
       b".reg .b64 %rd1;\n.reg .b32 %r1;\nmov.u64 %rd1, 16;\nmov.u32 %r1, 1;\n"
       b"st.global.u32 [%rd1], %r1;\nret;\n}\n\0")
cuda = ctypes.CDLL("libcuda.so.1")
context, module, function = ctypes.c_void_p(), ctypes.c_void_p(), ctypes.c_void_p()
for status in (
    cuda.cuInit(0),
    cuda.cuCtxCreate_v2(ctypes.byref(context), 0, 0),
    cuda.cuModuleLoadData(ctypes.byref(module), ptx),
    cuda.cuModuleGetFunction(ctypes.byref(function), module, b"f"),
    cuda.cuLaunchKernel(function, 1, 1, 1, 1, 1, 1, 0, None, None, None),
):
    assert status == 0, status
print(cuda.cuCtxSynchronize())
"""
ILLEGAL_ADDRESS = "700"  # CUDA_ERROR_ILLEGAL_ADDRESS


def test_the_doctor_does_not_blame_the_gpu_for_a_programs_error(
    inventory: Path,
) -> None:
    done = subprocess.run(
        [sys.executable, "-c", WRITES_BEYOND_ITS_MEMORY],
        capture_output=True, text=True, timeout=120, check=True,
    )  # fmt: skip
    assert done.stdout.strip() == ILLEGAL_ADDRESS
    log = subprocess.run(["dmesg"], capture_output=True, text=True, timeout=60, check=True).stdout
    lines = [line for line in log.splitlines() if "NVRM: Xid" in line]
    assert "): 31, " in lines[-1]
    found = json.loads(gpufleet("doctor", inventory, "--json").stdout)["hosts"]["@local"]
    assert found["verdict"] == "PASS", found["causes"]
    assert "XID 31" in gpufleet("explain", lines[-1]).stdout
