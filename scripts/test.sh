#!/usr/bin/env bash
# Every test that fits a coffee break; `make test-slow` has the real DKMS builds.
set -euo pipefail
cd "$(dirname "$0")/.."
python scripts/generate_docs.py --check
exec pytest -q -m "not slow" "$@"
