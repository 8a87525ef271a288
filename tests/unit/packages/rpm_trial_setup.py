"""Shared by the tests of rpm trial."""

from __future__ import annotations

RULE = "=" * 80


# the format of yum 3.4.3: a long name has a separate line
YUM = f"""\
{RULE}
 Package                 Arch        Version                Repository     Size
{RULE}
Installing:
 kernel                  x86_64      3.10.0-1160.125.1.el7  updates        52 M
 xorg-x11-server-Xorg    x86_64      1.20.4-29.el7_9        updates       1.5 M
     replacing  xorg-x11-server-old.x86_64 1.19-1
Removing for dependencies:
 nvidia-driver-latest-dkms-NvFBCOpenGL
                         x86_64      3:550.144.03-1.el7     @cuda         330 k

Transaction Summary
{RULE}
Install  2 Packages
Exiting on user command
""".splitlines()
