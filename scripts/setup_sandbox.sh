#!/usr/bin/env bash
# setup_sandbox.sh STAMP [LIST]: the Debian packages that the sandbox and its tests need, or those of
# LIST, as root or with sudo; STAMP is touched when they are there. Safe to repeat.
set -euo pipefail
cd "$(dirname "$0")/.."
stamp=$1 list=${2:-scripts/debian-packages.txt}

if ! command -v dpkg-query >/dev/null || ! command -v apt-get >/dev/null; then
    echo "The sandbox needs Debian or Ubuntu: its hosts are made of Debian packages." >&2
    echo "gpufleet itself does not: make setup-product installs it alone." >&2
    exit 1
fi
mapfile -t wanted < <(grep -v '^#' "$list")
missing=()
for package in "${wanted[@]}"; do
    status=$(dpkg-query -W -f '${db:Status-Status}' "$package" 2>/dev/null) || status=absent
    [ "$status" = installed ] || missing+=("$package")
done

if [ ${#missing[@]} -gt 0 ]; then
    install="apt-get install -y --no-install-recommends ${missing[*]}"
    update="apt-get update -q"
    if [ "$(id -u)" = 0 ]; then
        as_root=""
    elif sudo -n true 2>/dev/null; then
        as_root="sudo -n"
    else
        echo "Debian packages of $list are missing, and only root can install them. Type this once:" >&2
        echo "  sudo apt-get update && sudo $install" >&2
        exit 1
    fi
    echo "Installing Debian packages: ${missing[*]}"
    log=$(mktemp)
    quiet="env DEBIAN_FRONTEND=noninteractive"
    if ! { $as_root $update && $as_root $quiet $install; } >"$log" 2>&1 </dev/null; then
        tail -n 20 "$log" >&2
        echo "The Debian packages could not be installed; the whole output is in $log." >&2
        exit 1
    fi
    rm -f "$log"
fi
mkdir -p "$(dirname "$stamp")"
touch "$stamp"
