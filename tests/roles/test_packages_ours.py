"""The notes on a host about packages: only those that transactions of gpufleet installed."""

from __future__ import annotations

import subprocess
from pathlib import Path

import pytest

from gpufleet.host.shell import script_command

# dpkg-query prints the installed packages; a transaction adds to them.
DPKG_QUERY = """#!/bin/sh
sed 's/ .*//; s/^/ii  /' {there}
echo 'rc  gone'
echo 'iF  half-done'
"""
RPM = """#!/bin/sh
cat {there}
"""


class Packages:
    """A host with the packages in `there`; `install` is a transaction of apt, yum or dnf."""

    def __init__(self, folder: Path, manager: str) -> None:
        self.folder, self.manager = folder, manager
        self.there = folder / "there"
        self.file = str(folder / "home/driver.before")
        program, text = {"apt": ("dpkg-query", DPKG_QUERY), "yum": ("rpm", RPM)}[manager]
        (folder / program).write_text(text.format(there=self.there))
        (folder / program).chmod(0o755)
        self.put("bash 1", "old 1")

    def put(self, *packages: str) -> None:
        with self.there.open("a") as file:
            file.writelines(f"{package}\n" for package in packages)

    def run(self, name: str, *words: str) -> tuple[int, list[str]]:
        text = script_command(name, *words).get_raw_value()
        if self.manager == "yum":  # on any machine
            text = text.replace("has dpkg-query", "false")
        text = text.replace("\nPATH=", f"\nPATH={self.folder}:", 1)
        text = text.replace("${db:Status-Abbrev} ${Package}", "")
        done = subprocess.run(["sh", "-c", text], capture_output=True, text=True, check=False)
        return done.returncode, done.stdout.splitlines()

    def begin(self) -> None:
        assert self.run("packages/packages_before", self.file)[0] == 0
        assert self.run("packages/note_begun", f"{self.file}.begun", "drv")[0] == 0

    def install(self, planned: str, *packages: str, fails: bool = False, says: str = "") -> None:
        """A transaction that plans to install `planned` and installs `packages`."""
        lines = [f"echo '{package}' >>{self.there}" for package in packages]
        lines += [f"echo '{says}'", f"exit {int(fails)}"]
        words = ["sh", "-c", "; ".join(lines)]
        ours = f"{self.file}.ours"
        if self.manager == "apt":
            status, _ = self.run(
                "packages/apt_transaction", ours, planned, "failed", "unbuilt", *words
            )
        else:
            status, _ = self.run("packages/rpm_install", ours, planned, "failed", *words)
        assert status == int(fails)

    @property
    def added(self) -> list[str]:
        return self.run("packages/packages_added", self.file)[1]


@pytest.fixture(params=["apt", "yum"])
def packages(request: pytest.FixtureRequest, tmp_path: Path) -> Packages:
    return Packages(tmp_path, request.param)


def test_packages_of_a_transaction_are_ours(packages: Packages) -> None:
    packages.begin()
    packages.install("drv lib", "drv 1", "lib 1")
    assert packages.added == ["drv", "lib"]


def test_packages_installed_by_others_meanwhile_are_not_ours(packages: Packages) -> None:
    """Between a failed run and the next one, and during a run."""
    packages.begin()
    packages.install("drv lib", "lib 1", fails=True)
    packages.put("stranger 1")
    packages.begin()
    packages.install("drv", "drv 1", "unattended 1")
    assert packages.added == ["drv", "lib"]


def test_packages_of_a_failed_transaction_are_not_ours(packages: Packages) -> None:
    packages.begin()
    packages.install("drv dkms", fails=True)
    packages.put("dkms 1")
    packages.begin()
    packages.install("drv dkms", "drv 1", "dkms 2")
    assert packages.added == ["drv"]


def test_packages_installed_before_are_not_added(packages: Packages) -> None:
    packages.begin()
    packages.install("drv old", "drv 1", "old 2")
    assert packages.added == ["drv"]


def test_a_run_killed_in_its_transaction_has_noted_its_packages(
    packages: Packages,
) -> None:
    packages.begin()
    packages.install("drv lib", "drv 1", "lib 1", says="x")
    home = Path(packages.file).parent
    (home / "driver.before.ours").write_text("drv\nlib\nnever\n")  # as before it was settled
    assert packages.added == ["drv", "lib"]


def test_notes_of_an_earlier_version_are_good_for_what_it_asked_for_by_name(
    packages: Packages,
) -> None:
    packages.begin()
    (Path(packages.file).parent / "driver.before.ours").unlink()
    packages.put("drv 1", "lib 1", "stranger 1")
    assert packages.added == ["drv"]
    packages.begin()
    packages.install("new", "new 1")
    assert packages.added == ["drv", "new"]


def test_a_failed_package_list_is_not_an_empty_one(
    packages: Packages,
) -> None:
    for program in ("dpkg-query", "rpm"):
        (packages.folder / program).write_text("#!/bin/sh\nexit 2\n")
        (packages.folder / program).chmod(0o755)
    assert packages.run("packages/packages_before", packages.file)[0] != 0
    assert not Path(packages.file).exists()


@pytest.mark.parametrize("word", ["GPG", "OpenPGP"])
def test_a_key_is_ours_if_the_manager_reports_its_import(tmp_path: Path, word: str) -> None:
    packages = Packages(tmp_path, "yum")
    packages.begin()
    packages.put("gpg-pubkey aaaaaaaa-1")  # the admin's
    said = f"Importing {word} key 0xD42D0685:"
    packages.install("drv", "drv 1", "gpg-pubkey d42d0685-62589a51", says=said)
    assert packages.added == ["drv", "gpg-pubkey-d42d0685-62589a51"]


def test_a_key_imported_during_the_download_is_noted(tmp_path: Path) -> None:
    packages = Packages(tmp_path, "yum")
    packages.run("packages/packages_before", packages.file)
    manager = tmp_path / "manager"
    manager.write_text(
        f"#!/bin/sh\necho 'gpg-pubkey d42d0685-1' >>{packages.there}\n"
        "echo 'Importing GPG key 0x9CD0A493D42D0685:'\n"
    )
    manager.chmod(0o755)
    words = (f"{packages.file}.ours", "", str(manager), "fetch", "message", "drv")
    assert packages.run("packages/rpm_transaction", *words)[0] == 0
    packages.begin()
    assert packages.added == ["gpg-pubkey-d42d0685-1"]
    Path(f"{packages.file}.begun").unlink()
    assert "begun driver" in packages.run("node/unfinished", str(tmp_path / "home"), "driver")[1]


def test_a_list_that_cannot_be_written_is_reported_with_the_code(packages: Packages) -> None:
    command = script_command(
        *(
            ("packages/apt_transaction", f"{packages.folder}/no/list", "drv", "GF322 message", "")
            if packages.manager == "apt"
            else ("packages/rpm_install", f"{packages.folder}/no/list", "drv", "GF322 message")
        ),
        "touch",
        f"{packages.folder}/ran",
    )
    done = subprocess.run(
        ["sh", "-c", command.get_raw_value()], capture_output=True, text=True, check=False
    )
    assert done.returncode == 1
    first, second, *_ = done.stderr.splitlines()
    assert first == "GF322 message"
    assert second == f"  | {packages.folder}/no/list cannot be written"
    assert not (packages.folder / "ran").exists()
