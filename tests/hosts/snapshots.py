"""State of a host that a deploy could change, to compare before and after."""

from __future__ import annotations

from gpufleet_sandbox import Host

MARK = "== snapshot: "
TREES = "/etc /usr/share/keyrings /usr/local /boot /lib/modules /var/lib/dkms /var/lib/gpufleet"
COMMANDS = {
    "packages": "dpkg-query -W -f '${Package} ${Version} ${db:Status-Abbrev}\\n' 2>/dev/null"
    " || rpm -qa --qf '%{NAME} %{VERSION}-%{RELEASE}\\n' | sort",
    "holds": "apt-mark showhold 2>/dev/null || yum -q versionlock list 2>/dev/null || true",
    "files": f"find {TREES} -type f -exec sha256sum {{}} + 2>/dev/null | sort -k 2",
    "modes": f"find {TREES} -printf '%p %y %m %u:%g\\n' 2>/dev/null | sort",
    "devices": "find /dev -name 'nvidia*' | sort",
    "links": f"find {TREES} -type l -printf '%p -> %l\\n' 2>/dev/null | sort",
    "units": "systemctl list-unit-files --no-legend | awk '{ print $1, $2 }' | sort",
    "running": "systemctl list-units --type service --state active --no-legend --plain"
    " | awk '{ print $1, $4 }' | grep -v '^user' | sort",
    "modules": "awk '{ print $1 }' /proc/modules | sort",
}


def snapshot(host: Host, *ignored: str) -> dict[str, list[str]]:
    """Lines by kind: packages, holds, files with their sha256, links, units, services, modules.

    `ignored`: parts of paths that may change.
    """
    script = "\n".join(f"echo '{MARK}{kind}'; {command}" for kind, command in COMMANDS.items())
    found: dict[str, list[str]] = {}
    for part in host.output(script).split(MARK)[1:]:
        kind, *lines = part.strip().splitlines()
        found[kind] = [line for line in lines if not any(path in line for path in ignored)]
    assert set(found) == set(COMMANDS)
    assert found["packages"]
    assert found["files"]
    return found


def differences(before: dict[str, list[str]], after: dict[str, list[str]]) -> dict[str, list[str]]:
    """Kind -> added (+) and removed (-) lines; empty if both are the same."""
    found = {}
    for kind in before:
        removed = [f"- {line}" for line in before[kind] if line not in set(after[kind])]
        added = [f"+ {line}" for line in after[kind] if line not in set(before[kind])]
        if removed or added:
            found[kind] = removed + added
    return found
