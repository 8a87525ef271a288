"""`gpufleet doctor --bundle`: verdicts and evidence of hosts and clusters in one archive."""

from __future__ import annotations

import json
from collections.abc import Sequence
from functools import partial
from pathlib import Path

from gpufleet import __version__
from gpufleet.cli.diagnosis import read_fleet
from gpufleet.cli.output import print_note
from gpufleet.core.inventory import ListedHost
from gpufleet.core.live import is_quiet
from gpufleet.core.names import list_names
from gpufleet.core.visible import one_line
from gpufleet.doctor.document import doctor_json
from gpufleet.doctor.models import DoctorCheck, JudgedFleet
from gpufleet.evidence.archive import EvidenceArchive
from gpufleet.evidence.findings import EVIDENCE_INCOMPLETE
from gpufleet.evidence.models import EvidenceFile
from gpufleet.evidence.operations.hosts import collect_host, host_folder
from gpufleet.run.report_file import print_lost, print_run_finding

VERDICTS = "doctor.json"  # in the archive: the output of --json


def judge_with_evidence(
    inventory: str,
    limit: Sequence[str],
    checks: Sequence[DoctorCheck],
    now: int,
    path: Path,
    *,
    bug_report: bool,
) -> tuple[JudgedFleet, bool]:
    """The verdicts, with the evidence of all hosts and clusters in an archive. False if the archive
    could not be written, or lacks a host or cluster.

    `bug_report`: run NVIDIA's own report on the hosts, too."""
    archive = EvidenceArchive(path)
    more = partial(collect_host, archive, bug_report=bug_report)
    fleet = read_fleet(inventory, limit, more)
    judged = fleet.judge(checks, now)
    for host in judged.hosts:
        if (folder := host_folder(host.name)) not in archive.subjects:
            archive.note_lost(
                folder, " ".join(f"{each.code} {each.cause}".strip() for each in host.causes)
            )
    try:
        _collect_clusters(archive, fleet.targets)
        found = doctor_json(judged, now)
        text = json.dumps(found, indent=2)
        archive.add("", [EvidenceFile(VERDICTS, text, "verdicts, facts and findings of all")])
        archive.finish(f"Evidence of {inventory}, {found['time']}, gpufleet {__version__}")
    except OSError as error:
        print_lost(path, error)
        return judged, False
    if archive.lost:
        print_run_finding(EVIDENCE_INCOMPLETE(path=path, lost=list_names(archive.lost)))
    if not is_quiet():
        print_note(archive.summary)
    return judged, not archive.lost


def _collect_clusters(archive: EvidenceArchive, targets: Sequence[ListedHost]) -> None:
    """Collect the evidence of these clusters of the inventory."""
    if not targets:
        return
    # Imported here because it loads ssl, which pyinfra replaces when it is loaded itself.
    from gpufleet.evidence.operations.clusters import collect_cluster

    for target in targets:
        if not is_quiet():
            print_note(f"Collecting evidence of {one_line(target.name)}")
        collect_cluster(archive, target.name, target.data)
