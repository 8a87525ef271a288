"""Every XID in use, each as a cause: its meaning and what to do about it; and SXids. Pure."""

from __future__ import annotations

from datetime import date

from gpufleet.core.causes import Cause
from gpufleet.core.entries import Entry, entry_loader

HARDWARE, PROGRAM = "gpu", "workload"  # links of the chain
OF_PROGRAMS = ("RESTART_APP", "IGNORE")  # resolutions
NVLINK5_WORKFLOW = "WORKFLOW_NVLINK5_ERR"
MAKE_SURE = "Run `dmesg -T | grep -i xid` on the host: the first XID is the cause of later ones."


class Xid(Entry):
    """One code of NVIDIA's catalog. `now`, `then`: names of resolutions, the second for an XID
    that comes again."""

    mnemonic: str
    now: str = ""
    then: str = ""
    meaning: str = ""


class XidClass(Entry):
    """Codes that require the same action, each with its meaning."""

    name: str
    title: str
    codes: dict[int, str]


class XidCatalog(Entry):
    """xids.yaml, which explains its fields."""

    as_of: date
    source: str
    classes: tuple[XidClass, ...]
    nvlink5_source: str
    nvlink5: dict[str, str]
    resolutions_source: str
    resolutions: dict[str, str]
    xids: dict[int, Xid]

    def cause(self, code: int) -> Cause | None:
        """The XID as a cause, or None if no XID in use has that code."""
        xid = self.xids.get(code)
        if xid is None:
            return None
        return Cause(
            name=f"xid-{code}",
            cause=f"XID {code}, {xid.mnemonic}: {self.meaning(code)}{{what}}",
            make_sure=MAKE_SURE,
            remedy=self._remedy(xid),
            link=PROGRAM if xid.now in OF_PROGRAMS else HARDWARE,
            source=f"{self.resolutions_source}; as of {self.as_of}",
        )

    def meaning(self, code: int) -> str:
        """The meaning of an XID, or "" if no XID in use has that code."""
        known = (each.codes[code] for each in self.classes if code in each.codes)
        return next(known, self.xids[code].meaning if code in self.xids else "")

    def resolution(self, code: int, text: str) -> str | None:
        """The resolution of an XID whose line ends with `text`. "" if the catalog names none, None
        if no XID in use has that code."""
        xid = self.xids.get(code)
        if xid is None:
            return None
        if xid.now != NVLINK5_WORKFLOW:
            return xid.now
        words = text.split()
        return next((self.nvlink5[word] for word in words if word in self.nvlink5), xid.now)

    def codes(self, name: str) -> tuple[int, ...]:
        """The codes of a class of XIDs. Raises KeyError for an unknown class."""
        return tuple({each.name: each.codes for each in self.classes}[name])

    def class_of(self, code: int) -> str:
        """The class of an XID, or "" if it is in none."""
        return next((each.name for each in self.classes if code in each.codes), "")

    def _remedy(self, xid: Xid) -> str:
        if not xid.now:
            return "NVIDIA's catalog names no action. " + self.resolutions["CONTACT_SUPPORT"]
        remedy = self.resolutions[xid.now]
        if xid.then and xid.then not in (xid.now, "IGNORE"):
            remedy += f" If it comes again: {self.resolutions[xid.then]}"
        return remedy


class SxidGroup(Entry):
    """Codes with one resolution, each with its meaning."""

    name: str
    title: str
    now: str
    codes: dict[int, str]


class SxidCatalog(Entry):
    """sxids.yaml, which explains its fields."""

    as_of: date
    source: str
    other: dict[str, str]
    groups: tuple[SxidGroup, ...]

    def resolution(self, code: int, *, fatal: bool) -> str:
        """The resolution of an SXid, by its code or else by the severity in its line."""
        known = (group.now for group in self.groups if code in group.codes)
        return next(known, self.other["fatal" if fatal else "non_fatal"])

    def meaning(self, code: int) -> str:
        """The meaning of an SXid, or "" if the catalog does not have it."""
        return next((group.codes[code] for group in self.groups if code in group.codes), "")


load_xids = entry_loader(XidCatalog, "monitoring/xids")
load_sxids = entry_loader(SxidCatalog, "monitoring/sxids")
