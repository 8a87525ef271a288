"""Write docs/pictures/status-page.png and docs-start.png: screenshots of pages in a browser.

`make browser-pictures` runs it for each. The first starts hosts in a separate sandbox and removes
them.
"""

from __future__ import annotations

import io
import subprocess
import sys
from pathlib import Path

from PIL import Image

from scripts.browser import SERVED, Browser
from scripts.terminal_pictures import GPUFLEET, PICTURES, ROOT, fleet

PROVISIONED = ("ubuntu2204", "debian12", "el7", "nvswitch")
BARE = ("ubuntu2404", "nogpu")
SITE = ROOT / "build/site"
COLORS = 128  # of a picture
LARGEST = 200_000  # bytes


def save(name: str, browser: Browser, *, whole: bool = False) -> None:
    """Write a PNG of a page. Raises SystemExit if the file is too large or the page has an
    error."""
    if found := browser.complaints():
        raise SystemExit(f"The browser reports errors of the page: {found}")
    picture = browser.picture(whole=whole)
    file = PICTURES / f"{name}.png"
    Image.open(io.BytesIO(picture)).convert("RGB").quantize(COLORS).save(file, optimize=True)
    size = file.stat().st_size
    print(f"{file.relative_to(ROOT)}: {size} bytes")
    if size > LARGEST:
        raise SystemExit(f"{file} has more than {LARGEST} bytes: make the window smaller.")


def status_page() -> None:
    """The whole page of `gpufleet status --html` of some hosts, most of them provisioned."""
    with fleet((*PROVISIONED, *BARE)) as (_, folder):
        limits = [word for name in PROVISIONED for word in ("--limit", name)]
        gpufleet(folder, "apply", "inventories/prod.py", "--yes", *limits)
        gpufleet(folder, "status", "inventories/prod.py", "--html", "fleet.html")
        with Browser(1200) as browser:
            browser.open((folder / "fleet.html").as_uri())
            save("status-page", browser, whole=True)


def start_page() -> None:
    """The documentation's first page, as it is served."""
    with Browser(1280, 800, site=SITE) as browser:
        browser.open(f"http://{SERVED}/index.html")
        browser.until("document.querySelector('input.md-search__input')?.offsetWidth > 0")
        save("docs-start", browser)


def gpufleet(folder: Path, *words: str) -> None:
    subprocess.run([GPUFLEET, *words], cwd=folder, stdin=subprocess.DEVNULL, check=True)


if __name__ == "__main__":
    {"status-page": status_page, "docs-start": start_page}[sys.argv[1]]()
