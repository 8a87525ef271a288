# rpm_install.sh LIST NAMES MESSAGE WORD...: run the command WORD... of yum or dnf, which installs NAMES. A failure
# is reported with MESSAGE.
list=$1 names=$2 message=$3; shift 3
# package names have no spaces: splitting is meant
# shellcheck disable=SC2086
expect "$message" "$list" $names
spare_containers
out=$("$@" 2>&1)
status=$?
imported "$list" "$out"
settle "$list"
[ $status -eq 0 ] || fail "$message" "$out"
printf '%s\n' "$out"
