# apt_transaction.sh LIST NAMES MESSAGE UNBUILT WORD...: run the command WORD... of apt, which installs NAMES;
# LIST "" if it installs none. A failure is reported with MESSAGE, or with UNBUILT if the driver's module
# was not built.
list=$1 names=$2 message=$3 unbuilt=$4; shift 4
# package names have no spaces: splitting is meant
# shellcheck disable=SC2086
[ -z "$list" ] || expect "$message" "$list" $names
spare_containers
out=$("$@" 2>&1)
status=$?
[ -z "$list" ] || settle "$list"
[ $status -ne 0 ] || exit 0
log=$(printf '%s\n' "$out" | sed -n 's|.*\(/var/lib/dkms/nvidia[^ ]*/make\.log\).*|\1|p' | tail -n 1)
[ -z "$log" ] || fail "$unbuilt" "$out" "$log:" "$(tail -n 500 "$log")"
fail "$message" "$out"
