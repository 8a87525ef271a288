"""Parses a host's output into NodeFacts."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from gpufleet.facts.files import RECORD_PATH, WRITTEN_NOTES, parse_notes, parse_provenance
from gpufleet.facts.model import NodeFacts
from gpufleet.facts.script import CAPTURE_MARK
from gpufleet.facts.sections import Sections, drivers, hardware
from gpufleet.facts.sections.answers import parse_answers, parse_kubelet
from gpufleet.facts.sections.collectors import parse_collectors
from gpufleet.facts.sections.files import parse_cdi, parse_files
from gpufleet.facts.sections.health import parse_health
from gpufleet.facts.sections.identity import parse_clock, parse_identity, parse_os, parse_space
from gpufleet.facts.sections.kubernetes import parse_cluster_host
from gpufleet.facts.sections.metrics import parse_metrics
from gpufleet.facts.sections.packages import (
    parse_keyring,
    parse_lock,
    parse_packages,
    parse_trust,
    parse_versionlocks,
    upgrades_unattended,
)
from gpufleet.facts.sections.services import (
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
    """The facts in the output of `gather_command`, which got the same `mark`.

    The host is the controller if its machine id and its boot id are both the controller's:
    containers share the boot id of their machine, and clones its machine id, but not both.

    Raises FactsError, which names the section, if a section is missing or malformed.
    """
    sections = Sections(lines, mark)
    os = sections.parse("os", parse_os)
    identity = sections.parse("identity", parse_identity)
    on_disk = sections.parse("modinfo", hardware.parse_modinfo)
    library = sections.parse("library", hardware.parse_library)
    installed = on_disk is not None or library is not None
    packages = sections.parse("packages", lambda lines: parse_packages(lines, os))
    services = sections.parse("services", parse_services)
    files, contents = sections.parse("files", parse_files)
    provenance, trouble = parse_provenance(files.get(RECORD_PATH), files.get(WRITTEN_NOTES))
    if trouble:
        files[RECORD_PATH] = replace(files[RECORD_PATH], error=trouble)
    keyrings = (
        parse_keyring(path, data)
        for path, data in contents.items()
        if path.startswith(_KEYRING_FOLDERS)
    )
    oddities = sections.parse("oddities", lambda lines: {line.strip() for line in lines})
    driver_files = sections.parse("oddities", drivers.parse_driver_files)
    packaged = drivers.is_driver_packaged(packages.packages, driver_files)
    kernel = sections.parse("kernel", hardware.parse_kernel)
    dkms = sections.parse("dkms", hardware.parse_dkms)
    modules = sections.parse("modules", hardware.parse_modules)
    processes, pods, given = sections.parse("gpu", parse_gpu)
    collectors, listeners = sections.parse("collectors", parse_collectors)
    clock = sections.parse("end", parse_clock)
    health = (
        sections.parse("health", lambda lines: parse_health(lines, clock))
        if "health" in sections
        else None
    )
    asked = "answers" in sections
    runtimes = sections.parse(
        "runtimes", lambda lines: parse_runtimes(lines, packages.packages, services, files)
    )
    return NodeFacts(
        os=os,
        kernel=kernel,
        boot_id=identity["boot"],
        clock=clock,
        package_manager=packages.manager,
        pci=sections.parse("pci", hardware.parse_pci),
        taken=sections.parse("pci", hardware.parse_taken),
        modules=modules,
        loaded_flavour=sections.parse("modules", hardware.parse_flavour),
        module_on_disk=on_disk,
        listed=sections.parse("smi", hardware.parse_smi),
        library=library,
        dkms=dkms,
        device_nodes=sections.parse("devices", lambda lines: tuple(filter(None, lines))),
        packages=packages.packages,
        holds=packages.held | parse_versionlocks(files),
        broken=packages.broken,
        lock_holder=sections.parse("lock", parse_lock),
        files=files,
        keyrings=(*keyrings, *sections.parse("trust", parse_trust)),
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
        free_bytes=sections.parse("space", parse_space),
        unattended_upgrades=upgrades_unattended(packages, files, services),
        runfile_install=drivers.by_runfile(oddities, driver=installed, packaged=packaged),
        operator_driver="operator-driver" in oddities,
        foreign_driver=drivers.foreign_driver_sign(
            oddities, driver_files, dkms, kernel, loaded="nvidia" in modules, packaged=packaged
        ),
        driver_files=driver_files,
        controller=bool(controller_machine_id and controller_boot_id)
        and (identity.get("machine"), identity["boot"])
        == (controller_machine_id, controller_boot_id),
        cdi_specs=sections.parse("cdi", parse_cdi),
        privileged=identity.get("user") == "0",
        run_lock=identity.get("run", ""),
        busy="held" in identity,
        health=health,
        answers=sections.parse("answers", parse_answers) if asked else {},
        kubelet_answer=sections.parse("kubelet", parse_kubelet) if asked else None,
        exporter_answers=sections.parse("metrics", parse_metrics) if asked else (),
    )
