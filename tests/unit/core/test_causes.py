"""The cause of a failure, found in the output of the program that failed."""

from __future__ import annotations

import re

import pytest

from gpufleet.core.causes import find_cause, load_causes, without_progress


@pytest.mark.parametrize(
    ("line", "name", "what"),
    [
        ("E: You don't have enough free space in /var/cache/apt/archives/.", "space",
         "/var/cache/apt/archives"),
        ("W: Error writing to file - write (28: No space left on device)", "space", ""),
        ("[Errno 28] No space left on device: '/var/cache/dnf/x.solv'", "space",
         "/var/cache/dnf/x.solv"),
        ("  At least 120MB more space needed on the /usr filesystem.", "space", "/usr"),
        ("  installing package a-1.x86_64 needs 8MB on the / filesystem", "space", "/"),
        ("Error: open /home/ops/.cache/helm/repository/a.tgz: no space left on device", "space",
         "/home/ops/.cache/helm/repository/a.tgz"),
        ("Error: this bootc system is configured to be read-only. For more information, run `bootc",
         "image", ""),
        ("touch: cannot touch '/var/lib/dpkg/x': Read-only file system", "read-only",
         "/var/lib/dpkg/x"),
        ("E: Could not get lock /var/lib/dpkg/lock-frontend. It is held by process 812 (apt-get)",
         "lock", "process 812 (apt-get)"),
        ("Existing lock /var/run/yum.pid: another copy is running as pid 77.", "lock", "pid 77"),
        ("Waiting for process with pid 78 to finish.", "lock", "process with pid 78"),
        ("W: Failed to fetch http://m/InRelease  407  Proxy Authentication Required [IP: x]",
         "proxy", "407"),
        ("curl: (56) Received HTTP code 403 from proxy after CONNECT", "proxy", "403"),
        ('Get "https://a": proxyconnect tcp: dial tcp 10.0.0.1:3128: connect: connection refused',
         "proxy", "10.0.0.1:3128"),
        ("Err:1 http://m jammy InRelease Temporary failure resolving 'mirror.corp'", "resolve",
         "mirror.corp"),
        ("[Errno 14] curl#6 - \"Could not resolve host: mirror.corp; Unknown error\"", "resolve",
         "mirror.corp"),
        ('Get "https://a/index.yaml": dial tcp: lookup charts.corp on 10.0.0.2:53: no such host',
         "resolve", "charts.corp"),
        ("gcc: fatal error: Killed signal terminated program cc1", "memory", ""),
        ("cc1: out of memory allocating 65536 bytes: Cannot allocate memory", "memory", ""),
        ("File: /var/lib/dkms/evdi/1.14.4/source/dkms.conf does not exist.", "dkms-source",
         "/var/lib/dkms/evdi/1.14.4"),
        ("gpufleet: the host is shutting down", "shutdown", ""),
        ("E: Release file for http://m/InRelease is not valid yet (invalid for another 4d 11h "
         "23min 36s). Updates for this repository will not be applied.", "clock",
         "invalid for another 4d 11h 23min 36s"),
        ("curl: (60) SSL certificate problem: certificate is not yet valid", "clock", ""),
        ('Get "https://a": tls: failed to verify certificate: x509: certificate has expired or is '
         "not yet valid: current time 2020-01-01T00:00:09Z is before 2026-03-01T00:00:00Z", "clock",
         "current time 2020-01-01T00:00:09Z is before 2026-03-01T00:00:00Z"),
        ('Get "https://a/index.yaml": x509: certificate signed by unknown authority', "certificate",
         ""),
        ("curl: (60) SSL certificate problem: self-signed certificate in certificate chain",
         "certificate", ""),
        ("W: GPG error: https://m/deb  InRelease: The following signatures were invalid: EXPKEYSIG "
         "234654DA9A296436 isv:kubernetes OBS Project", "key", "234654DA9A296436"),
        ("W: GPG error: https://m/deb  InRelease: Sub-process /usr/bin/sqv returned an error code, "
         "error message is: Error: Policy rejected packet type  Caused by:     Signature Packet v3 "
         "is not considered secure since 2026-02-01T00:00:00Z", "policy",
         "Signature Packet v3 is not considered secure since 2026-02-01"),
        ("E: Failed to fetch https://m/ubuntu2004/x86_64/Packages.gz  File has unexpected size "
         "(1503986 != 1514203). Mirror sync in progress? [IP: x]", "mirror", "1503986 != 1514203"),
        ("W: Failed to fetch https://m/Packages.gz  Hash Sum mismatch", "mirror", ""),
        ("W: Failed to fetch http://m/InRelease  Could not connect to m.corp:80 (10.0.0.5). - "
         "connect (111: Connection refused)", "connect", "m.corp:80"),
        ("E: Failed to fetch http://m/InRelease  Cannot initiate the connection to m:80 "
         "(fd00::1). - connect (101: Network is unreachable)", "connect", "m:80"),
        ('[Errno 14] curl#7 - "Failed connect to m.corp:80; Connection refused"', "connect",
         "m.corp:80"),
        ("curl: (28) Connection timed out after 30001 milliseconds", "connect", ""),
    ],
)  # fmt: skip
def test_a_cause_is_known_by_its_line(line: str, name: str, what: str) -> None:
    found = find_cause(["Reading package lists...", line, "E: Sub-process returned an error code"])
    assert found
    assert found.name == name
    assert found.text.endswith(f" ({what})") if what else "(" not in found.text


@pytest.mark.parametrize(
    "line",
    [
        "E: Unmet dependencies. Try 'apt --fix-broken install'",
        "Error! Bad return status for module build on kernel: 5.15.0-122-generic (x86_64)",
        'Error: UPGRADE FAILED: cannot patch "a" with kind Deployment',
        "npm ERR! Could not resolve dependency:",
        "Failed to connect to bus: No such file or directory",
        # a consequence: the kubelet waits for the API server that does not start
        'E1 reflector.go: Get "https://10.0.0.5:6443/api": dial tcp 10.0.0.5:6443: connect: '
        "connection refused",
        "",
    ],
)
def test_other_failures_have_none(line: str) -> None:
    assert find_cause([line]) is None


def test_the_cause_that_is_named_last_counts() -> None:
    """apt only warns about an unreachable source of the user. The later error is the cause."""
    lines = [
        "W: Temporary failure resolving 'other.corp'",
        "E: No space left on device",
        "E: failed",
    ]
    found = find_cause(lines)
    assert found
    assert found.name == "space"


def test_every_cause_has_a_remedy_and_can_say_what() -> None:
    for cause in load_causes().causes:
        assert cause.remedy.endswith(".")
        assert "`" in cause.make_sure
        finds = any(re.compile(each).groupindex for each in cause.patterns) or cause.path
        assert ("{what}" in cause.cause) == finds, cause.name


def test_progress_is_left_out() -> None:
    lines = ["Get:1 http://m x", "(Reading database ... 5%\r(Reading database ... 9%\r", "a\rb\r",
             "(1/2): a.rpm | 1.2 MB 00:00:01", "Setting up a (1) ...", "E: it fails"]  # fmt: skip
    assert without_progress(lines) == ["b", "E: it fails"]
    assert without_progress(lines[:1]) == lines[:1], "rather that than nothing"
