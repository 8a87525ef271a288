# cdi_generate.sh SPEC MESSAGE WORD...: write the spec by the command WORD...
spec=$1 message=$2; shift 2
mkdir -p "$(dirname "$spec")" || exit 1
out=$("$@" 2>&1) && [ -s "$spec" ] || fail "$message" "$out"
exit 0
