"""The result of `gpufleet catalog check`, as text and as data."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from rich.console import Console

from gpufleet.catalog.compare import unread_findings
from gpufleet.catalog.models import Gap, LiveSource, Unread
from gpufleet.core.console import print_finding
from gpufleet.core.exit_status import ExitStatus
from gpufleet.core.names import count_noun


@dataclass(frozen=True, slots=True)
class CatalogCheck:
    """The result of a check."""

    sources: Sequence[LiveSource]
    unread: Sequence[Unread]
    gaps: Sequence[Gap]
    patch: str
    written: Sequence[Gap]  # the gaps that the patch closes

    @property
    def status(self) -> ExitStatus:
        if self.gaps:
            return ExitStatus.DRIFT
        return ExitStatus.FAILED if self.unread else ExitStatus.CONVERGED

    def as_dict(self) -> dict[str, object]:
        """`{"sources": […], "gaps": […]}`."""
        reasons = {each.source: unread_findings([each])[0] for each in self.unread}
        return {
            "sources": [
                {
                    "subject": source.subject,
                    "title": source.title,
                    "url": source.url,
                    "finding": reasons[source].as_dict() if source in reasons else None,
                }
                for source in self.sources
            ],
            "gaps": [
                {
                    "subject": gap.subject,
                    "url": gap.url,
                    "written": gap in self.written,
                    **gap.finding.as_dict(),
                }
                for gap in self.gaps
            ],
        }


def show_catalog_check(console: Console, found: CatalogCheck) -> None:
    """Print each difference, each source that was not read, and a summary line."""
    for gap in found.gaps:
        print_finding(console, gap.finding)
    for finding in unread_findings(found.unread):
        print_finding(console, finding)
    read = len(found.sources) - len(found.unread)
    line = f"{read} of {count_noun(len(found.sources), 'source')} read: "
    line += f"{count_noun(len(found.gaps), 'difference')} from the catalog"
    console.print(line, highlight=False, markup=False)
