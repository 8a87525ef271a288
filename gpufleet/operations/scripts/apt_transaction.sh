# apt_transaction.sh MESSAGE UNBUILT WORD...: run the command WORD... of apt or dpkg. When it fails, that is
# told with MESSAGE, or with UNBUILT where the driver's module could not be built.
message=$1 unbuilt=$2; shift 2
out=$("$@" 2>&1) && exit 0
log=$(printf '%s\n' "$out" | sed -n 's|.*\(/var/lib/dkms/nvidia[^ ]*/make\.log\).*|\1|p' | tail -n 1)
[ -z "$log" ] || fail "$unbuilt" "$(printf '%s\n' "$out" | grep -E '^Error!')" "$log:" "$(tail -n 5 "$log")"
fail "$message" "$(printf '%s\n' "$out" | tail -n 12)"
