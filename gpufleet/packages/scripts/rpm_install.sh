# rpm_install.sh LIST NAMES WORD...: run the command WORD... of yum or dnf, which installs NAMES.
list=$1 names=$2; shift 2
# package names have no spaces: splitting is meant
# shellcheck disable=SC2086
expect "$list" $names
out=$("$@" 2>&1)
status=$?
imported "$list" "$out"
settle "$list"
[ $status -eq 0 ] || exec >&2
printf '%s\n' "$out"
exit $status
