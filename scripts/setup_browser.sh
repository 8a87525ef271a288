#!/usr/bin/env bash
# setup_browser.sh PYTHON STAMP: a browser for the tests and pictures that need one: that of this
# machine, or Debian's package without windows (100 MB to download). Safe to repeat.
set -euo pipefail
cd "$(dirname "$0")/.."
python=$1 stamp=$2

if "$python" -m scripts.browser; then
    touch "$stamp"
elif [ -r /etc/os-release ] && [ "$(. /etc/os-release && echo "$ID")" = debian ]; then
    scripts/setup_sandbox.sh "$stamp" scripts/browser-packages.txt
else
    echo "There is no browser, and only Debian has one as a package that runs without windows:" >&2
    echo "tests in a browser are skipped. chromium or google-chrome on the PATH is used; a snap is not." >&2
fi
