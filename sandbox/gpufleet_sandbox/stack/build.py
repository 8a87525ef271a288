"""Write the stack's images into the registry that the mirror serves."""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Mapping
from pathlib import Path

from gpufleet_sandbox.cluster.build import program
from gpufleet_sandbox.debian import unpacked
from gpufleet_sandbox.kubernetes import images
from gpufleet_sandbox.kubernetes.build import FOLDER, write_images
from gpufleet_sandbox.kubernetes.images import Image
from gpufleet_sandbox.locks import exclusive
from gpufleet_sandbox.mirror.payload import text
from gpufleet_sandbox.stack.names import EXPORTER, names, packages

PROGRAMS = (
    "prometheus-operator", "prometheus-config-reloader", "prometheus", "prometheus-adapter",
    "node-problem-detector", "kube-state-metrics", "dcgm-exporter",
)  # fmt: skip
LIBC = ("libc6",)
COUNTERS = "/etc/dcgm-exporter/default-counters.csv"
PLUGIN_ENVIRONMENT = {"NVIDIA_VISIBLE_DEVICES": "all", "NVIDIA_DRIVER_CAPABILITIES": "utility"}
Progress = Callable[[str], None]


def build_stack(cache: Path, progress: Progress) -> None:
    """Write them once for each set of programs. SandboxError GF654 if one cannot be built."""
    home = cache / "mirror"
    programs = {name: program(name, cache / "go", progress) for name in PROGRAMS}
    done = home / FOLDER / f".stack-{_recipe(programs)}"
    with exclusive(home, FOLDER, progress):
        if not done.exists():
            progress("writing the images of the GPU stack")
            write_images(home / FOLDER / "v2", stack_images(programs))
            done.touch()


def stack_images(programs: Mapping[str, Path]) -> list[Image]:
    """Every image, from its programs by name."""
    known = {short: str(name) for short, name in names().items()}
    alone = {
        "operator": ("prometheus-operator", "/bin/operator"),
        "reloader": ("prometheus-config-reloader", "/bin/prometheus-config-reloader"),
        "state": ("kube-state-metrics", "/kube-state-metrics"),
    }
    linked = {
        "prometheus": ("prometheus", "/bin/prometheus"),
        "adapter": ("prometheus-adapter", "/adapter"),
    }
    found = [
        Image(known[short], images.files({place: programs[name]}), (place,))
        for short, (name, place) in alone.items()
    ]
    found += [
        Image(known[short], images.files({place: programs[name]}, packages=LIBC), (place,))
        for short, (name, place) in linked.items()
    ]
    found += [
        Image(known[short], images.files({}, packages=(*LIBC, name)), (f"/usr/bin/{name}",))
        for short, name in packages().items()
    ]
    # as in the real image: busybox' shell would run its own dd, which cannot read the kernel's log
    tools = unpacked("coreutils")
    detector = {
        "/node-problem-detector": programs["node-problem-detector"],
        "/bin/sh": unpacked("dash") / "bin" / "dash",
        "/bin/dd": tools / "bin" / "dd",
        "/bin/od": tools / "usr" / "bin" / "od",
    }
    return [
        *found,
        Image(
            known["detector"],
            images.files(detector, packages=LIBC, shell=True),
            ("/node-problem-detector",),
        ),
        Image(
            str(EXPORTER),
            images.files(
                {"/usr/bin/dcgm-exporter": programs["dcgm-exporter"]},
                packages=LIBC,
                texts={COUNTERS: text("conf/default-counters.csv")},
            ),
            ("/usr/bin/dcgm-exporter",),
            PLUGIN_ENVIRONMENT,
        ),
    ]


def _recipe(programs: Mapping[str, Path]) -> str:
    """Changes with the programs' versions and with how images are written."""
    ours = b"".join(path.read_bytes() for path in sorted(Path(__file__).parent.glob("*.py")))
    folders = " ".join(path.parent.name for path in programs.values())
    return hashlib.sha256(ours + folders.encode()).hexdigest()[:12]
