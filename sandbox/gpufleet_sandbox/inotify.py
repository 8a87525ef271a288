"""fs.inotify.max_user_instances: systemd needs 8 per host, the default 128 allows 18 hosts."""

from __future__ import annotations

from pathlib import Path

SETTING = Path("/proc/sys/fs/inotify/max_user_instances")
NEEDED = 4096


def raise_limit(cache: Path) -> None:
    """Raise the limit, and save its value before the first sandbox."""
    before = int(SETTING.read_text())
    if before < NEEDED:
        saved = cache / "sandbox" / "inotify-before"
        saved.parent.mkdir(parents=True, exist_ok=True)
        if not saved.exists():
            saved.write_text(str(before))
        SETTING.write_text(str(NEEDED))


def restore_limit(cache: Path) -> None:
    """Restore the saved limit; for the last sandbox that goes down."""
    saved = cache / "sandbox" / "inotify-before"
    if saved.exists():
        SETTING.write_text(saved.read_text())
        saved.unlink()
