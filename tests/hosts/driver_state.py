"""The driver of a sandbox host, read without product code."""

from __future__ import annotations

from gpufleet_sandbox import Host

NEWEST = {"550": "550.163.01", "580": "580.178.04"}  # in the sandbox's mirror
OLD_580 = "580.159.03"
ONLY_DRIVER = {"toolkit_enabled": False}
CHANGE_DRIVER = {**ONLY_DRIVER, "driver_allow_change": True}


def loaded(host: Host) -> str:
    """Version of the module in the kernel, or `none`."""
    return host.output("cat /sys/module/nvidia/version 2>/dev/null || echo none")


def driver_packages(host: Host) -> dict[str, str]:
    """Installed packages of all driver branches -> version without epoch and release."""
    listed = host.output(
        "dpkg-query -W -f '${Package} ${Version} ${db:Status-Abbrev}\\n' 2>/dev/null"
        " || rpm -qa --qf '%{NAME} %{VERSION} ii\\n'"
    )
    rows = [line.split() for line in listed.splitlines()]
    return {
        name: version.split("-")[0].split(":")[-1]
        for name, version, state in rows
        if state[1] == "i" and ("nvidia" in name or "libcuda" in name) and "container" not in name
    }


def held(host: Host) -> set[str]:
    """Held package names; on rpm hosts the version locks of the driver."""
    if not host.kind.is_rpm:
        return set(host.output("apt-mark showhold").split())
    locks = host.output("yum -q versionlock list").splitlines()
    return {lock for lock in locks if "nvidia" in lock}


def assert_driver(host: Host, version: str) -> None:
    """Packages, module and library have this version, the daemon runs, every GPU responds."""
    packages = driver_packages(host)
    assert set(packages.values()) == {version}, packages
    assert loaded(host) == version
    query = "nvidia-smi --query-gpu=driver_version,persistence_mode --format=csv,noheader"
    gpus = host.output("lspci -n -d 10de: | grep -c ' 0302: '")
    assert host.output(query).splitlines() == [f"{version}, Enabled"] * int(gpus)
    assert host.output("systemctl is-active nvidia-persistenced") == "active"
    assert "nouveau" not in host.output("lsmod")


def mig_layouts(host: Host) -> list[list[str]]:
    """The profiles of each GPU, as nvidia-smi -L lists them."""
    found: list[list[str]] = []
    for line in host.output("nvidia-smi -L").splitlines():
        if line.startswith("GPU "):
            found.append([])
        else:
            found[-1].append(line.split()[1])
    return found
