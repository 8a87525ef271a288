"""The initramfs is rebuilt and read whichever programs a host has for it."""

from __future__ import annotations

import os
import shutil
import subprocess
from pathlib import Path

import pytest

from gpufleet.host.shell import script_command

FILE = "/etc/modprobe.d/gpufleet-nvidia.conf"
KERNEL = os.uname().release
DEBIAN, EL = f"initrd.img-{KERNEL}", f"initramfs-{KERNEL}.img"


def rebuilt(
    folder: Path, image: str, programs: dict[str, str], *words: str, file: str = FILE
) -> tuple[int, str]:
    """The exit status, and the command that made the image of a host with only these programs."""
    for tool in ("find", "grep", "sed", "uname"):
        (folder / tool).symlink_to(shutil.which(tool) or "")
    for program, text in programs.items():
        (folder / program).write_text(f"#!/bin/sh\n{text}\n")
        (folder / program).chmod(0o755)
    (folder / image).write_text("")
    command = script_command("driver/initramfs", file, "GF556", *words).get_raw_value()
    command = command.replace("\nPATH=", f"\nPATH={folder} #", 1).replace("/boot/", f"{folder}/")
    shell = shutil.which("sh") or ""
    done = subprocess.run([shell, "-c", command], capture_output=True, text=True, check=False)
    made = folder / "made"
    ran = made.read_text().replace(f"{folder}/", "").strip() if made.exists() else ""
    return done.returncode, ran


def maker(folder: Path) -> str:
    return f'echo "${{0##*/}} $*" >>{folder}/made'


@pytest.mark.parametrize(
    ("image", "makers", "lister", "command"),
    [
        (DEBIAN, ("update-initramfs",), "lsinitramfs", f"update-initramfs -u -k {KERNEL}"),
        (DEBIAN, ("update-initramfs", "dracut"), "lsinitrd", f"update-initramfs -u -k {KERNEL}"),
        (DEBIAN, ("dracut",), "lsinitrd", f"dracut --force {DEBIAN} {KERNEL}"),
        (EL, ("dracut",), "lsinitrd", f"dracut --force {EL} {KERNEL}"),
    ],
)
@pytest.mark.parametrize("there", [True, False])
def test_the_image_is_made_and_its_list_is_read(
    tmp_path: Path, image: str, makers: tuple[str, ...], lister: str, command: str, there: bool
) -> None:
    programs = dict.fromkeys(makers, maker(tmp_path))
    programs[lister] = f"echo {FILE.lstrip('/') if there else 'etc/fstab'}"
    assert rebuilt(tmp_path, image, programs) == (0 if there else 1, command)


def test_a_removed_file_must_be_gone(tmp_path: Path) -> None:
    programs = {"dracut": maker(tmp_path), "lsinitrd": f"echo {FILE.lstrip('/')}"}
    assert rebuilt(tmp_path, DEBIAN, programs, "gone")[0] == 1


def test_a_file_that_was_edited_and_stays_may_be_in_the_image(tmp_path: Path) -> None:
    edited = tmp_path / "edited.conf"
    edited.write_text("# mine")
    programs = {"dracut": maker(tmp_path), "lsinitrd": f"echo {str(edited).lstrip('/')}"}
    assert rebuilt(tmp_path, DEBIAN, programs, "gone", file=str(edited)) == (0, "")


def test_a_host_without_a_program_or_an_image_is_left_alone(tmp_path: Path) -> None:
    assert rebuilt(tmp_path, "other", {"dracut": maker(tmp_path)}) == (0, "")
