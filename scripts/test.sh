#!/usr/bin/env bash
# Every test that fits a coffee break, three files at a time, for most of them wait; `make test-slow` has the real DKMS builds.
set -euo pipefail
cd "$(dirname "$0")/.."
python scripts/generate_docs.py --check
export GOGC=400  # helm and the servers are short-lived: their garbage may wait
exec pytest -q --numprocesses 3 --dist loadfile --no-loadscope-reorder --durations 10 "$@"
