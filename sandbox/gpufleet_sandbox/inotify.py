"""fs.inotify.max_user_instances: systemd needs eight per host, the usual 128 ends at 18 hosts."""

from __future__ import annotations

from pathlib import Path

SETTING = Path("/proc/sys/fs/inotify/max_user_instances")
NEEDED = 4096


def raise_limit(cache: Path) -> None:
    """Raise the limit and remember what it was before the first sandbox."""
    before = int(SETTING.read_text())
    if before < NEEDED:
        remembered = cache / "sandbox" / "inotify-before"
        remembered.parent.mkdir(parents=True, exist_ok=True)
        if not remembered.exists():
            remembered.write_text(str(before))
        SETTING.write_text(str(NEEDED))


def restore_limit(cache: Path) -> None:
    """Put the limit back, once no sandbox is up any more."""
    remembered = cache / "sandbox" / "inotify-before"
    if remembered.exists():
        SETTING.write_text(remembered.read_text())
        remembered.unlink()
