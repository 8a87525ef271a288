"""Findings of the checks of the container toolkit, the runtimes and CDI."""

from __future__ import annotations

from gpufleet.verify.findings import check

TOOLKIT_BINARY = check(
    "GF761",
    "Container toolkit program is not the packaged one",
    "`nvidia-ctk --version` must print the recorded version, and each program of the container "
    "toolkit must exist and run.",
    "Look for a second one with `which -a`; reinstall the package, which `dpkg -S` or `rpm -qf` "
    "names.",
)

RUNTIME_VALID = check(
    "GF771",
    "Configuration rejected by the runtime",
    "The runtime's own parser must accept its configuration.",
    "Correct {path}; copies from before each change: ls -d /var/lib/gpufleet/backup/*{path}",
)
RUNTIME_OURS = check(
    "GF772",
    "nvidia runtime missing from the runtime's configuration",
    "The configuration of each managed runtime must contain the nvidia runtime.",
    "Run `gpufleet apply` for this host.",
)
RUNTIME_USER_KEYS = check(
    "GF773",
    "User settings missing from the runtime's configuration",
    "Settings that were in the configuration before gpufleet's first change must still be there.",
    "Restore the keys in {path}; copies from before each change: ls -d "
    "/var/lib/gpufleet/backup/*{path}",
)
RUNTIME_KNOWS = check(
    "GF774",
    "Running daemon lacks the nvidia runtime",
    "The running daemon must report the nvidia runtime among its runtimes.",
    "Restart it when its containers may stop: `systemctl restart {unit}`.",
)

RUNTIME_CRI = check(
    "GF764",
    "containerd's CRI plugin is not loaded",
    "Every part of containerd's CRI plugin must be loaded; without it no pod starts.",
    "`journalctl -u {unit}` has the reason; often default_runtime_name in {path} is a runtime that "
    "is not defined there.",
)
RUNTIME_BASE = check(
    "GF765",
    "nvidia runtime lacks a program that it calls",
    "`nvidia-container-runtime --version` must succeed: it calls runc or crun. CRI-O also needs "
    "the monitor of the runtime, by default conmon in PATH.",
    "Install the program, or name its path. runc or crun: nvidia-ctk config --in-place --set "
    "nvidia-container-runtime.runtimes=/usr/libexec/crio/crun; CRI-O's monitor: monitor_path in "
    "[crio.runtime.runtimes.nvidia].",
)

CDI = check(
    "GF780",
    "CDI spec missing or stale",
    "The CDI spec must exist and describe the installed driver and every GPU.",
    "Run `nvidia-ctk cdi generate --output={path}`.",
)
CONTAINER_SEES_GPUS = check(
    "GF781",
    "Container does not see the GPUs",
    "A container with the nvidia runtime must see the host's GPUs.",
    "Run the command manually and read its error; check `nvidia-ctk cdi list` and "
    "/etc/nvidia-container-runtime/config.toml next.",
)
