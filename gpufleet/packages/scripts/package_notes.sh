# Shared by the scripts that install packages, or ask which of them are gpufleet's. LIST holds a name a line: the
# packages that transactions of gpufleet brought, and those that one which has not ended is to bring.
# packages_there: the packages of this host, half done ones among them; each key of rpm's has a name of its own
packages_there() {
    if has dpkg-query; then
        dpkg-query -W -f '${db:Status-Abbrev} ${Package}\n' | sed -n 's/^.[^nc]. //p'
    else
        rpm -qa --qf '%{NAME} %{VERSION}-%{RELEASE}\n' | sed 's/^gpg-pubkey /gpg-pubkey-/; s/ .*//'
    fi | sort -u | grep . # a host has some: none is a failure
}
# expect LIST NAME...: a transaction is to bring NAMEs; those that are there already are not its own
expect() {
    list=$1; shift
    [ $# -gt 0 ] || return 0
    { printf '%s\n' "$@" | sort -u >"$list.wanted" && packages_there >"$list.there" &&
        comm -23 "$list.wanted" "$list.there" >>"$list"; } || fail "$list: cannot be written" ""
    rm -f "$list.wanted" "$list.there"
}
# settle LIST: the transaction has ended, well or not: what did not come is not ours if another brings it later
settle() {
    if sort -u "$1" >"$1.wanted" && packages_there >"$1.there" && comm -12 "$1.wanted" "$1.there" >"$1.new"; then
        mv "$1.new" "$1"
    fi
    rm -f "$1.wanted" "$1.there" "$1.new"
}
# imported LIST OUTPUT: the keys that yum or dnf took into rpm's, by its own word
imported() {
    [ -n "$1" ] || return 0
    for key in $(printf '%s\n' "$2" | tr A-F a-f |
        sed -n 's/.*Importing [A-Za-z]* key 0x[0-9a-f]*\([0-9a-f]\{8\}\)\([^0-9a-f].*\)*$/\1/p'); do
        packages_there | grep -- "^gpg-pubkey-.*$key-" >>"$1"
    done
}
