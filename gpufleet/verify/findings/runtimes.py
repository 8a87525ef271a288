"""What the checks of the container toolkit, the runtimes and CDI report."""

from __future__ import annotations

from gpufleet.verify.findings import check

TOOLKIT_PACKAGES = check(
    "GF760",
    "Container toolkit missing or at another version",
    "The container toolkit packages must be installed at the recorded version.",
    "Run `gpufleet apply` for this host.",
)
TOOLKIT_BINARY = check(
    "GF761",
    "nvidia-ctk is not the packaged one",
    "`nvidia-ctk --version` must print the recorded version.",
    "Look for a second one with `which -a nvidia-ctk`; reinstall the package.",
)
TOOLKIT_PROGRAMS = check(
    "GF763",
    "Container toolkit program cannot be run",
    "Each program of the container toolkit must exist and run.",
    "Reinstall its package; `dpkg -S` or `rpm -qf` with the path prints its name.",
)
TOOLKIT_HOLD = check(
    "GF762",
    "Container toolkit packages not held",
    "The container toolkit packages must be held at their version.",
    "Run `gpufleet apply` for this host.",
)

RUNTIME_UP = check(
    "GF770",
    "Container runtime not running",
    "The service of each configured runtime must be active.",
    "`systemctl status {unit}` and `journalctl -u {unit}` have the reason; then start it.",
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
CONTAINER = check(
    "GF781",
    "Container does not see the GPUs",
    "A container with the nvidia runtime must see the host's GPUs.",
    "Run the command manually and read its error; check `nvidia-ctk cdi list` and "
    "/etc/nvidia-container-runtime/config.toml next.",
)
