"""Every XID in use, each as a cause: its meaning and what to do about it. Pure."""

from __future__ import annotations

from datetime import date

from gpufleet.core.causes import Cause
from gpufleet.core.entries import Entry, entry_loader
from gpufleet.monitoring.alert_models import XidClass

HARDWARE, PROGRAM = "gpu", "workload"  # links of the chain
OF_PROGRAMS = ("RESTART_APP", "IGNORE")  # resolutions
MAKE_SURE = "Run `dmesg -T | grep -i xid` on the host: the first XID is the cause of later ones."


class Xid(Entry):
    """One code of NVIDIA's catalog. `now`, `then`: names of resolutions, the second for an XID
    that comes again."""

    mnemonic: str
    now: str = ""
    then: str = ""
    meaning: str = ""


class XidCatalog(Entry):
    """xids.yaml, which explains its fields."""

    as_of: date
    source: str
    classes: tuple[XidClass, ...]
    resolutions_source: str
    resolutions: dict[str, str]
    xids: dict[int, Xid]

    def cause(self, code: int) -> Cause | None:
        """The XID as a cause, or None if no XID in use has that code."""
        xid = self.xids.get(code)
        if xid is None:
            return None
        meanings = {number: text for each in self.classes for number, text in each.codes.items()}
        return Cause(
            name=f"xid-{code}",
            cause=f"XID {code}, {xid.mnemonic}: {xid.meaning or meanings[code]}{{what}}",
            make_sure=MAKE_SURE,
            remedy=self._remedy(xid),
            link=PROGRAM if xid.now in OF_PROGRAMS else HARDWARE,
            source=f"{self.resolutions_source}; as of {self.as_of}",
        )

    def _remedy(self, xid: Xid) -> str:
        if not xid.now:
            return "NVIDIA's catalog names no action. " + self.resolutions["CONTACT_SUPPORT"]
        remedy = self.resolutions[xid.now]
        if xid.then and xid.then not in (xid.now, "IGNORE"):
            remedy += f" If it comes again: {self.resolutions[xid.then]}"
        return remedy


load_xids = entry_loader(XidCatalog, "monitoring/xids")
