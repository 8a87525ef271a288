"""What gather.sh printed on a host, as NodeFacts."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace

from gpufleet.facts.cluster_host import parse_cluster_host
from gpufleet.facts.collectors import parse_collectors
from gpufleet.facts.drivers import foreign, packaged, parse_driver_files
from gpufleet.facts.files import PROVENANCE, parse_cdi, parse_files, parse_notes, parse_provenance
from gpufleet.facts.hardware import (
    parse_dkms,
    parse_flavour,
    parse_kernel,
    parse_library,
    parse_modinfo,
    parse_modules,
    parse_pci,
    parse_taken,
)
from gpufleet.facts.model import Keyring, NodeFacts, OsRelease
from gpufleet.facts.packages import (
    keyring,
    parse_lock,
    parse_packages,
    parse_trust,
    unattended,
    versionlocks,
)
from gpufleet.facts.script import CAPTURE_MARK
from gpufleet.facts.sections import Sections, records
from gpufleet.facts.services import (
    parse_gpu,
    parse_runtimes,
    parse_services,
    runs_kubelet,
    runs_rootless_docker,
)

_KEYRING_FOLDERS = (
    "/usr/share/keyrings/",
    "/etc/pki/rpm-gpg/",
    "/etc/apt/keyrings/",
    "/etc/apt/trusted.gpg.d/",
    "/etc/apt/trusted.gpg",
)


def parse_node_facts(
    lines: Sequence[str],
    *,
    mark: str = CAPTURE_MARK,
    controller_machine_id: str = "",
    controller_boot_id: str = "",
) -> NodeFacts:
    """The facts in the output of gather.sh, which got the same `mark`.

    The host is the controller when both its machine id and its boot id are the controller's:
    containers share the boot id of their machine, and clones its machine id, but not both.

    Raises FactsError, which names the section, when one is missing or malformed.
    """
    sections = Sections(lines, mark)
    os = sections.parse("os", _parse_os)
    identity = sections.parse("identity", _parse_identity)
    on_disk = sections.parse("modinfo", parse_modinfo)
    library = sections.parse("library", parse_library)
    packages = sections.parse("packages", lambda lines: parse_packages(lines, os))
    services = sections.parse("services", parse_services)
    files, contents = sections.parse("files", parse_files)
    provenance, trouble = parse_provenance(files.get(PROVENANCE))
    if trouble:
        files[PROVENANCE] = replace(files[PROVENANCE], error=trouble)
    oddities = sections.parse("oddities", lambda lines: {line.strip() for line in lines})
    driver_files = sections.parse("oddities", parse_driver_files)
    kernel = sections.parse("kernel", parse_kernel)
    dkms = sections.parse("dkms", parse_dkms)
    modules = sections.parse("modules", parse_modules)
    processes, pods, given = sections.parse("gpu", parse_gpu)
    collectors, listeners = sections.parse("collectors", parse_collectors)
    runtimes = sections.parse(
        "runtimes", lambda lines: parse_runtimes(lines, packages.packages, services, files)
    )
    return NodeFacts(
        os=os,
        kernel=kernel,
        boot_id=identity["boot"],
        clock=sections.parse("end", _parse_clock),
        package_manager=packages.manager,
        pci=sections.parse("pci", parse_pci),
        taken=sections.parse("pci", parse_taken),
        modules=modules,
        loaded_flavour=sections.parse("modules", parse_flavour),
        module_on_disk=on_disk,
        library=library,
        dkms=dkms,
        device_nodes=sections.parse("devices", lambda lines: tuple(filter(None, lines))),
        packages=packages.packages,
        holds=packages.held | versionlocks(files),
        broken=packages.broken,
        lock_holder=sections.parse("lock", parse_lock),
        files=files,
        keyrings=_keyrings(contents) + sections.parse("trust", parse_trust),
        services=services,
        runtimes=runtimes,
        rootless_docker=sections.parse("runtimes", runs_rootless_docker),
        gpu_processes=processes,
        collectors=collectors,
        listeners=listeners,
        machine_id=identity.get("machine", ""),
        cluster_host=sections.parse("kubernetes", parse_cluster_host),
        kubelet=runs_kubelet(services),
        gpu_pods=pods,
        gpu_containers=given,
        provenance=provenance,
        noted_runtimes=parse_notes(files),
        free_bytes=sections.parse("space", _parse_space),
        unattended_upgrades=unattended(packages, files, services),
        runfile_install=_runfile(
            oddities,
            driver=on_disk is not None or library is not None,
            packaged=packaged(packages.packages, driver_files),
        ),
        operator_driver="operator-driver" in oddities,
        foreign_driver=foreign(
            oddities, driver_files, packages.packages, dkms, kernel, loaded="nvidia" in modules
        ),
        driver_files=driver_files,
        controller=bool(controller_machine_id and controller_boot_id)
        and (identity.get("machine"), identity["boot"])
        == (controller_machine_id, controller_boot_id),
        cdi_specs=sections.parse("cdi", parse_cdi),
        privileged=identity.get("user") == "0",
        run_lock=identity.get("run", ""),
        busy="held" in identity,
    )


def _parse_os(lines: Sequence[str]) -> OsRelease:
    values: dict[str, str] = {}
    for line in lines:
        key, separator, value = line.strip().partition("=")
        if separator and not key.startswith("#"):
            values[key] = value.strip("\"'")
    if not values.get("ID"):
        raise ValueError("there is no ID: /etc/os-release is missing or cut off")
    return OsRelease(
        id=values["ID"],
        version_id=values.get("VERSION_ID", ""),
        id_like=tuple(values.get("ID_LIKE", "").split()),
        codename=values.get("VERSION_CODENAME") or values.get("UBUNTU_CODENAME", ""),
        pretty_name=values.get("PRETTY_NAME", ""),
    )


def _parse_identity(lines: Sequence[str]) -> dict[str, str]:
    values = dict(records(lines))
    if not values.get("boot"):
        raise ValueError("there is no boot id: /proc is not mounted or not readable")
    return values


def _parse_clock(lines: Sequence[str]) -> int:
    return int(dict(records(lines))["clock"])


def _parse_space(lines: Sequence[str]) -> dict[str, int]:
    free: dict[str, int] = {}
    for line in filter(str.strip, lines):
        blocks, size, path = line.split(" ", 2)
        free[path] = int(blocks) * int(size)
    return free


def _keyrings(contents: Mapping[str, bytes]) -> tuple[Keyring, ...]:
    return tuple(
        keyring(path, data) for path, data in contents.items() if path.startswith(_KEYRING_FOLDERS)
    )


def _runfile(oddities: set[str], *, driver: bool, packaged: bool) -> bool:
    """The installer's log alone may be old; it counts where a driver is there without packages."""
    return "runfile uninstaller" in oddities or (
        "runfile log" in oddities and driver and not packaged
    )
