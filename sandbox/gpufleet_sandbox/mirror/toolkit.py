"""Packages of the NVIDIA container toolkit, with its real programs inside."""

from __future__ import annotations

from pathlib import Path

from gpufleet_sandbox.mirror.model import File, Package
from gpufleet_sandbox.mirror.payload import LIBRARY_DIRS, Format, stub_library, text

BASE, HOOK = "nvidia-container-toolkit-base", "nvidia-container-toolkit"
TOOLS, LIBRARY = "libnvidia-container-tools", "libnvidia-container1"
BASE_PROGRAMS = ("nvidia-ctk", "nvidia-cdi-hook", "nvidia-container-runtime")
REFRESH = ("nvidia-cdi-refresh.path", "nvidia-cdi-refresh.service")


def packages(version: str, format: Format, programs: Path, work: Path) -> list[Package]:
    """The four packages of one version; they depend on exactly that version, as since 1.18.0."""
    postinst = "postinst" if format == "deb" else "post"
    base_files = {f"/usr/bin/{name}": File(programs / name, 0o755) for name in BASE_PROGRAMS}
    # The toolkit installs its units into /etc (1.18 to 1.20), not into /usr/lib.
    base_files |= {
        f"/etc/systemd/system/{n}": File(text(f"units/{n}"), config=True) for n in REFRESH
    }
    base_files["/etc/nvidia-container-toolkit/nvidia-cdi-refresh.env"] = File(
        "# Settings of nvidia-cdi-refresh.service\n", config=True
    )
    hook = "nvidia-container-runtime-hook"
    library = f"{LIBRARY_DIRS[format]}/libnvidia-container.so"
    scripts = {postinst: text(f"scripts/toolkit-base.{postinst}")}
    return [
        _package(format, BASE, version, "programs and CDI", (), base_files, scripts=scripts),
        _package(
            format,
            HOOK,
            version,
            "runtime hook",
            (BASE, TOOLS),
            {f"/usr/bin/{hook}": File(programs / hook, 0o755)},
            links={"/usr/bin/nvidia-container-toolkit": hook},
        ),
        _package(
            format,
            TOOLS,
            version,
            "imitation of nvidia-container-cli, which cannot configure containers",
            (LIBRARY,),
            {
                "/usr/bin/nvidia-container-cli": File(
                    text("daemons/nvidia-container-cli.sh", VERSION=version), 0o755
                )
            },
        ),
        _package(
            format,
            LIBRARY,
            version,
            "empty library",
            (),
            {f"{library}.{version}": File(stub_library("libnvidia-container.so.1", work), 0o755)},
            links={f"{library}.1": f"libnvidia-container.so.{version}"},
        ),
    ]


def _package(
    format: Format,
    name: str,
    version: str,
    summary: str,
    needs: tuple[str, ...],
    files: dict[str, File],
    *,
    links: dict[str, str] | None = None,
    scripts: dict[str, str] | None = None,
) -> Package:
    complete = f"{version}-1"
    if format == "deb":
        relations = {"Depends": tuple(f"{need} (= {complete})" for need in needs)}
        if name in (HOOK, BASE):
            old = ("nvidia-container-runtime (<= 3.5.0-1)", "nvidia-container-runtime-hook")
            relations |= {"Breaks": old, "Replaces": old}
    else:
        relations = {"Requires": tuple(f"{need} = {complete}" for need in needs)}
        if name in (HOOK, BASE):
            old = ("nvidia-container-runtime <= 3.5.0-1", "nvidia-container-runtime-hook")
            relations["Obsoletes"] = old
    return Package(
        format,
        name,
        complete,
        f"NVIDIA container toolkit {version}: {summary}",
        relations=relations,
        files=files,
        links=links or {},
        scripts=scripts or {},
    )
