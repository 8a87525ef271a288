#!/usr/bin/env bash
# release_check.sh PYTHON TAG: what must hold before a tag is pushed; builds dist/. Needs no hosts.
set -euo pipefail
cd "$(dirname "$0")/.."
python=$1 tag=$2

fail() { echo "release: $*" >&2; exit 1; }
version=$(sed -n 's/^__version__ = "\(.*\)"$/\1/p' gpufleet/__init__.py)
[ "$tag" = "v$version" ] || fail "the tag is $tag, gpufleet/__init__.py has $version."
grep -qE "^## $version \([0-9]{4}-[0-9]{2}-[0-9]{2}\)$" CHANGELOG.md ||
    fail "CHANGELOG.md has no section '## $version (YYYY-MM-DD)'."
[ -z "$(git status --porcelain)" ] || fail "the working tree has changes: commit them."

rm -rf dist
"$python" -m build --no-isolation --outdir dist . >build/release.log 2>&1 ||
    { tail -n 20 build/release.log >&2; fail "the build failed."; }
"$python" -m twine check --strict dist/*
trial=$(mktemp -d)
trap 'rm -rf "$trial"' EXIT
"$python" -m venv "$trial/venv"
"$trial/venv/bin/pip" --quiet --disable-pip-version-check install -c constraints.txt dist/*.whl
[ "$("$trial/venv/bin/gpufleet" --version)" = "gpufleet, version $version" ] || fail "the wheel has another version."
"$trial/venv/bin/gpufleet" docs >/dev/null
echo "$tag: dist/ is ready."
