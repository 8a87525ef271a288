"""The machine that the tests run on: its facts, nvidia-smi's answer, a program on a GPU."""

from __future__ import annotations

import shutil
import subprocess
import sys
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from xml.etree import ElementTree

import pytest

from gpufleet.facts.model import NodeFacts
from gpufleet.facts.parse import parse_node_facts
from gpufleet.facts.script import LINE_END, gather_command

ROOT = Path(__file__).resolve().parents[2]
VERSION = Path("/proc/driver/nvidia/version")
USES_A_GPU = """
import ctypes, sys
cuda = ctypes.CDLL("libcuda.so.1")
context, memory = ctypes.c_void_p(), ctypes.c_void_p()
for status in (
    cuda.cuInit(0),
    cuda.cuCtxCreate_v2(ctypes.byref(context), 0, 0),
    cuda.cuMemAlloc_v2(ctypes.byref(memory), ctypes.c_size_t(1 << 28)),
):
    if status:
        sys.exit(f"CUDA error {status}")
print("ready", flush=True)
sys.stdin.read()
"""


@dataclass(frozen=True)
class Smi:
    """What `nvidia-smi -q -x` prints."""

    driver: str
    gpus: dict[str, str]  # slot on the PCI bus, as the kernel writes it -> name of the product
    minors: frozenset[str]  # of the device nodes
    pids: frozenset[int]  # of processes that compute


def smi() -> Smi:
    done = subprocess.run(["nvidia-smi", "-q", "-x"], capture_output=True, check=True, timeout=60)
    root = ElementTree.fromstring(done.stdout)
    gpus = root.findall("gpu")
    return Smi(
        driver=root.findtext("driver_version", ""),
        # eight digits of the domain, of which the kernel writes four
        gpus={g.attrib["id"][4:].lower(): g.findtext("product_name", "") for g in gpus},
        minors=frozenset(gpu.findtext("minor_number", "") for gpu in gpus),
        pids=frozenset(int(pid.text or 0) for pid in root.findall("gpu/processes/*/pid")),
    )


def gather(*shell: str, paths: Sequence[str] = (), health: bool = False) -> NodeFacts:
    """Facts of this machine, by a shell that runs the facts command."""
    command = gather_command(paths, health=health)
    done = subprocess.run([*shell, "-c", command], capture_output=True, check=True, timeout=60)
    return parse_node_facts(done.stdout.decode().replace(LINE_END, "\n").splitlines())


def gpufleet(*words: str | Path) -> subprocess.CompletedProcess[str]:
    code = "from gpufleet.cli import main; main()"
    return subprocess.run(
        [sys.executable, "-c", code, *map(str, words)],
        cwd=ROOT,
        capture_output=True,
        text=True,
        timeout=300,
    )


@pytest.fixture(scope="session", autouse=True)
def _a_gpu() -> None:
    if not VERSION.exists() or not shutil.which("nvidia-smi"):
        pytest.skip("no NVIDIA driver is loaded here: `make test-gpu` on a machine with a GPU")


@pytest.fixture
def facts() -> NodeFacts:
    return gather("sh")


@pytest.fixture
def inventory(tmp_path: Path) -> Path:
    """This machine as the only host."""
    path = tmp_path / "inventory.py"
    path.write_text('gpu_nodes = ["@local"]\n')
    return path


@pytest.fixture
def program() -> Iterator[subprocess.Popen[str]]:
    """A program with memory of a GPU, until the test ends it or is over."""
    process = subprocess.Popen(
        [sys.executable, "-c", USES_A_GPU],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
    )
    assert process.stdout
    assert process.stdout.readline() == "ready\n"
    yield process
    process.communicate()
