#!/usr/bin/env bash
# Every test that fits a coffee break, two files at a time; `make test-slow` has the real DKMS builds.
set -euo pipefail
cd "$(dirname "$0")/.."
python scripts/generate_docs.py --check
exec pytest -q --numprocesses 2 --dist loadfile --durations 10 "$@"
