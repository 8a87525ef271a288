"""Compile the simulated machine: the folder that a host mounts at /usr/lib/sim."""

from __future__ import annotations

import hashlib
import re
import shutil
from pathlib import Path

from gpufleet_sandbox.locks import exclusive
from gpufleet_sandbox.machine.kernels import build_kernels
from gpufleet_sandbox.machine.nvidia import nvml_header
from gpufleet_sandbox.process import run

SOURCES = Path(__file__).parent
PROGRAMS = ("init", "kmod", "coldplug", "install-kernel", "dracut", "lsinitrd", "mokutil", "procfs")
DATA = ("gpus.txt", "mig.txt", "sim-coldplug.service")
NVML = ("nvml", "nvml_host", "nvml_settings", "nvml_mig", "nvml_compute", "mig_state")
CC = ("gcc", "-O2", "-fPIC", "-shared")


def build(cache: Path) -> Path:
    """Compile once per version of the sources. Returns the folder, `cache`/machine/<hash>."""
    target = cache / "machine" / _version()
    with exclusive(cache / "machine", "build"):
        if not target.exists():
            partial = target.with_suffix(".part")
            shutil.rmtree(partial, ignore_errors=True)
            partial.mkdir(parents=True)
            for name in PROGRAMS + DATA:
                shutil.copy2(SOURCES / name, partial / name)
            for name in PROGRAMS:
                (partial / name).chmod(0o755)
            run([*CC, SOURCES / "simkernel.c", "-o", partial / "simkernel.so", "-ldl"])
            run(["gcc", "-O2", SOURCES / "runc.c", "-o", partial / "runc"])
            _build_nvml(nvml_header(cache), partial)
            build_kernels(SOURCES, partial / "kernels")
            partial.rename(target)
    return target


def _version() -> str:
    digest = hashlib.sha256()
    for path in sorted(SOURCES.iterdir()):
        if path.is_file():
            digest.update(path.name.encode() + path.read_bytes())
    return digest.hexdigest()[:12]


def _build_nvml(header: Path, folder: Path) -> None:
    """Build the library: our functions, and "not supported" for all others in the header."""
    flags = [f"-I{header.parent}", "-DNVML_NO_UNVERSIONED_FUNC_DEFS"]
    sources = [SOURCES / f"{name}.c" for name in NVML]
    written = "".join(path.read_text() for path in sources)
    missing = sorted(_declared(header.read_text()) - set(re.findall(r"\b(nvml[A-Z]\w+)", written)))
    rest = folder / "nvml_rest.c"
    rest.write_text("".join(f"int {name}(void) {{ return 3; }}\n" for name in missing))
    map_file = f"-Wl,--version-script={SOURCES / 'exports.map'}"
    library = folder / "libnvidia-ml.so.1"
    run([*CC, *flags, map_file, "-Wl,-soname,libnvidia-ml.so.1", *sources, rest, "-o", library])


def _declared(header: str) -> set[str]:
    return set(re.findall(r"nvmlReturn_t\s+(?:DECLDIR\s+)?(nvml[A-Z]\w+)\s*\(", header))
