"""One host under check: its expected state, its actual state, and how its checks fail."""

from __future__ import annotations

from functools import cache, cached_property
from typing import Any

from gpufleet.core.data import read_data, read_folder
from gpufleet.core.names import count_noun
from gpufleet.verify.checks import CheckFailed, Subject
from gpufleet.verify.findings.hosts import NEEDS_ROOT, PACKAGES, REACHABLE
from gpufleet.verify.inventory import Target
from gpufleet.verify.parse import (
    Installed,
    UnreadableLocks,
    bare_version,
    dpkg_packages,
    json_mapping,
    lock_lines,
    parse_units,
    rpm_packages,
)
from gpufleet.verify.probe import COMMAND_MISSING, Output, Probe, Unreachable
from gpufleet.verify.runtimes import RUNTIME_NAMES, CheckedRuntime, configuration_path

PROVENANCE_PATH = "/var/lib/gpufleet/provenance.json"
PROVENANCE_SCHEMA = 1
DRIVER_FILE = "/etc/modprobe.d/gpufleet-nvidia.conf"  # of each driver that gpufleet installed
UNREAD = "the host could not be read"


@cache
def _debian_words() -> frozenset[str]:
    """Words in ID and ID_LIKE of /etc/os-release for distributions that use dpkg."""
    families = read_data("core/families")["families"]
    words = {word for f in families if f["packaging"] == "deb" for word in f["words"]}
    known = (d for d in read_folder("core/distributions") if d["style"] == "deb")
    return frozenset(words.union(*(entry["os"]["ids"] for entry in known)))


class CheckedNode(Subject):
    """A host and all that the checks read from it. Each script runs once, when first needed."""

    def __init__(self, target: Target, probe: Probe) -> None:
        super().__init__(target)
        self.probe = probe
        self._refusal: CheckFailed | None = None  # why the host could not be read

    # The state of the host.

    @cached_property
    def trouble(self) -> str | None:
        """Why the host cannot be read, or None."""
        try:
            self._sections = self.probe.script("host.sh")
        except Unreachable as error:
            return str(error)
        except CheckFailed as error:
            self._refusal = error
            return error.finding.message
        uid = self._sections.get("uid", COMMAND_MISSING)
        if not uid.ok or uid.last == "0":
            return None
        finding = NEEDS_ROOT(None, expected="root", found=f"user ID {uid.last}")
        self._refusal = CheckFailed(self.name, finding)
        return finding.message

    def need_answer(self) -> None:
        """Skip the check if the host could not be read."""
        code = self._refusal.finding.code if self.trouble and self._refusal else ""
        self.need(not code, f"{UNREAD} ({code})")
        self.need(not self.trouble, "the host is not reachable (GF710)")

    def reach(self) -> None:
        """Fail the check if the host could not be read."""
        if self.trouble and self._refusal:
            raise self._refusal
        self.expect(not self.trouble, REACHABLE, "an answer over SSH", self.trouble)

    def section(self, name: str) -> Output:
        """A section of host.sh. Skips the check if the host could not be read."""
        self.need_answer()
        return self._sections.get(name, COMMAND_MISSING)

    def sections(self, prefix: str) -> dict[str, Output]:
        """The sections whose names begin with `prefix`, by the rest of the name."""
        self.need_answer()
        found = self._sections.items()
        return {name.removeprefix(prefix): out for name, out in found if name.startswith(prefix)}

    @cached_property
    def is_debian(self) -> bool:
        values = dict(
            line.split("=", 1) for line in self.section("os-release").lines if "=" in line
        )
        families = (values.get("ID", "") + " " + values.get("ID_LIKE", "")).replace('"', "").split()
        return bool(_debian_words().intersection(families))

    @cached_property
    def packages(self) -> dict[str, Installed]:
        if self.is_debian:
            return dpkg_packages(self.section("dpkg").text)
        return rpm_packages(self.section("rpm").text, self.locks[0])

    @cached_property
    def locks(self) -> tuple[list[str], str]:
        """The entries of the versionlock list, and why it cannot be read, or ""."""
        try:
            return lock_lines(self.section("versionlock").text), ""
        except UnreadableLocks as error:
            return [], str(error)

    @cached_property
    def kernel(self) -> str:
        return self.section("kernel").text.strip()

    def _pci(self, *classes: str) -> list[str]:
        lines = (line.split() for line in self.section("pci").lines)
        return [slot for slot, pci_class in lines if pci_class[:6] in classes]

    @cached_property
    def gpus(self) -> list[str]:
        """PCI addresses of the GPUs: display (0300) and 3D (0302) controllers."""
        return self._pci("0x0300", "0x0302")

    @cached_property
    def mig_devices(self) -> list[list[str]]:
        """The profiles of each GPU's MIG devices, in the order of nvidia-smi -L."""
        found: list[list[str]] = []
        for line in self.section("smi-list").lines:
            if line.startswith("GPU "):
                found.append([])
            elif found and line.split()[:1] == ["MIG"]:
                found[-1] += line.split()[1:2]
        return found

    @cached_property
    def nvswitches(self) -> list[str]:
        """PCI addresses of the NVSwitches: NVIDIA bridges of class 0680."""
        return self._pci("0x0680")

    @cached_property
    def loaded(self) -> str | None:
        """The version of the loaded nvidia module."""
        section = self.section("loaded-version")
        return section.text.strip() if section.ok else None

    @cached_property
    def services(self) -> dict[str, dict[str, str]]:
        return parse_units(self.section("services").text)

    # The expected state of the host.

    @cached_property
    def provenance(self) -> dict[str, Any]:
        """The record of the installation. {} if it is missing or unreadable, or if a part that the
        checks read is not an object."""
        record = json_mapping(self.section("provenance").text)
        parts = [
            record.get(name) or {} for name in ("driver", "gpu", "toolkit", "exporter", "files")
        ]
        if not all(isinstance(part, dict) for part in parts):
            return {}
        inner = [part.get(name) or {} for part in parts for name in ("packages", "runtimes")]
        return record if all(isinstance(part, dict) for part in inner) else {}

    @property
    def driver(self) -> dict[str, Any]:
        return dict(self.provenance.get("driver") or {})

    @property
    def toolkit(self) -> dict[str, Any]:
        return dict(self.provenance.get("toolkit") or {})

    @property
    def layouts(self) -> dict[str, dict[str, str]]:
        """The recorded layout and settings of the GPUs: slot -> key -> value."""
        lines = dict(self.provenance.get("gpu") or {}).get("gpus")
        known = lines if isinstance(lines, dict) else {}
        return {
            str(slot): dict(word.partition("=")[::2] for word in str(words).split())
            for slot, words in known.items()
        }

    def is_wanted(self, role: str) -> bool:
        """True if the inventory enables the `driver` or the `toolkit` for a host like this one."""
        return bool(self.gpus) and self.data.get(f"{role}_enabled") is not False

    @property
    def has_kept_driver(self) -> bool:
        """True if the loaded driver was not installed by gpufleet: a run recorded other roles, and
        the driver's file does not exist."""
        ours = self.driver or DRIVER_FILE in (self.provenance.get("files") or {})
        return bool(self.provenance and self.is_wanted("driver") and self.loaded and not ours)

    @property
    def driver_version(self) -> str:
        """The recorded driver version. Skips the check if no driver is recorded."""
        self.need(self.gpus or self.driver, "the host has no NVIDIA GPU")
        self.need(self.driver.get("version"), "no driver is recorded (GF711)")
        return str(self.driver["version"])

    def need_driver(self) -> str:
        """The recorded driver version. Skips the check without a recorded driver or a GPU."""
        version = self.driver_version
        self.need(self.gpus, "no NVIDIA GPU on the PCI bus (GF741)")
        return version

    def need_loaded(self) -> str:
        """The loaded driver version. Skips the check if the nvidia module is not loaded."""
        self.need_driver()
        self.need(self.loaded, "the nvidia module is not loaded (GF730)")
        return str(self.loaded)

    # Packages.

    def differences(self, recorded: dict[str, str]) -> list[str]:
        """Each recorded package that is not installed at its version, as text."""
        found = []
        for name, version in sorted(recorded.items()):
            package = self.packages.get(name)
            if package is None:
                found.append(f"no {name}")
            elif version not in (package.version, bare_version(package.version)):
                found.append(f"{name} {package.version} instead of {version}")
        return found

    def expect_held(self, recorded: dict[str, str]) -> None:
        """Fail unless every installed package of the record is held."""
        loose = sorted(n for n in recorded if n in self.packages and not self.packages[n].held)
        way = "dpkg's hold" if self.is_debian else "the versionlock list"
        unreadable = "" if self.is_debian else self.locks[1]
        self.expect(
            not loose,
            PACKAGES,
            f"{count_noun(len(recorded), 'package')} held by {way}",
            unreadable or f"not held: {', '.join(loose)}",
        )

    # Container runtimes.

    def read(self) -> None:
        """Read everything now, so that many hosts can be read in parallel."""
        if not self.trouble and self.runtimes:
            _ = self._runtime_answer

    @cached_property
    def runtimes(self) -> dict[str, CheckedRuntime]:
        """The runtimes that should serve GPUs: recorded ones and the inventory's."""
        wanted = self.data.get("toolkit_runtimes")
        names = set(self.toolkit.get("runtimes") or {})
        names |= set(wanted) if isinstance(wanted, (list, tuple)) else set()
        return {name: CheckedRuntime(name, self) for name in RUNTIME_NAMES if name in names}

    @property
    def runtime_sections(self) -> dict[str, Output]:
        """Sections of runtimes.sh, for the runtimes of this host. If they could not be read
        completely, the first check fails and later checks are skipped."""
        answer = self._runtime_answer
        if not isinstance(answer, CheckFailed):
            return answer
        self.need(self._refusal is None, f"{UNREAD} ({answer.finding.code})")
        self._refusal = answer
        raise answer

    @cached_property
    def _runtime_answer(self) -> dict[str, Output] | CheckFailed:
        paths = (
            configuration_path(self, name) if name in self.runtimes else ""
            for name in RUNTIME_NAMES
        )
        try:
            return self.probe.script("runtimes.sh", *paths)
        except CheckFailed as error:
            return error

    def runtime(self, name: str) -> CheckedRuntime:
        """One runtime. Skips the check if this host should not have it."""
        self.need(name in self.runtimes, f"{name} is not recorded as a GPU runtime")
        return self.runtimes[name]
