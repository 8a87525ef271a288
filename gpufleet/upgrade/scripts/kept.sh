# Shared by the scripts that use the packages of the earlier version.
# kept FOLDER VERSION UNUSABLE: fail unless they are there and whole
kept() {
    there=$(cat "$1/from" 2>/dev/null)
    [ -s "$1/sums" ] && [ "$there" = "$2" ] || fail "$3" "there: ${there:-nothing}"
    out=$(cd "$1/packages" && sha256sum -c --quiet ../sums 2>&1) || fail "$3" "$out"
}
