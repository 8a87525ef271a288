# purge.sh MANAGER MESSAGE NAME...: remove exactly these packages. The low-level tools refuse a package
# that another one needs: it stays, and is printed as `kept NAME`. A changed configuration file stays
# too: `changed PATH`. Any other refusal is an error.
manager=$1 message=$2; shift 2
# matches PATTERN NAME: whether dpkg's three letters for the package match
matches() { dpkg-query -W -f '${db:Status-Abbrev}\n' "$2" 2>/dev/null | grep -q "$1"; }
there() {
    if [ "$manager" = apt ]; then matches '^.[^nc ]' "$1"; else rpm -q "$1" >/dev/null 2>&1; fi
}
known() { if [ "$manager" = apt ]; then matches '^.[^n ]' "$1"; else there "$1"; fi; }
units() { # units whose file comes with the packages
    if [ "$manager" = apt ]; then dpkg-query -L "$@"; else rpm -ql "$@"; fi 2>/dev/null |
        sed -n 's#^.*/systemd/system/\([^/@]*\.[a-z]*\)$#\1#p' | grep -E '\.(service|path|timer|socket)$' | sort -u
}
changed() { # configuration files of a dpkg package that differ from the packaged ones
    dpkg-query -W -f '${Conffiles}\n' "$1" 2>/dev/null | while read -r path digest state; do
        [ -n "$digest" ] && [ "$state" != obsolete ] && [ -e "$path" ] || continue
        [ "$(md5sum "$path" | cut -d' ' -f1)" = "$digest" ] || echo "changed $path"
    done
}
drop() {
    if [ "$manager" = apt ]; then
        apt-mark unhold "$@" >/dev/null 2>&1
        out=$(dpkg --remove "$@" 2>&1)
        return
    fi
    out=$(rpm -e "$@" 2>&1) || return
    # rpm keeps a changed configuration file itself, under another name
    printf '%s\n' "$out" | sed -n 's/^warning: .* saved as \(.*\.rpmsave\)$/changed \1/p'
}
wanted='' edited='' out=''
for name; do
    known "$name" || continue
    wanted="$wanted $name"
    [ "$manager" = apt ] && [ -n "$(changed "$name")" ] || continue
    changed "$name"
    edited="$edited $name"
done
[ -n "$wanted" ] || exit 0
# package and unit names have no spaces: splitting is meant
# shellcheck disable=SC2086
set -- $wanted
# rpm leaves configuration folders that a package created but does not own; dpkg removes them
folders=''
[ "$manager" = apt ] || folders=$(rpm -ql "$@" 2>/dev/null | sed -n 's#^\(/etc/.*\)/[^/]*$#\1#p' | sort -ru)
all=$(units "$@")
enabled=''
for unit in $all; do
    systemctl is-enabled -q "$unit" 2>/dev/null || continue
    enabled="$enabled $unit"
    disable_units --now "$unit" 2>/dev/null
done
if ! drop "$@"; then
    progress=yes
    while [ -n "$progress" ]; do
        progress=''
        for name; do if there "$name" && drop "$name"; then progress=yes; fi; done
    done
fi
kept='' purged=''
for name; do
    case " $edited " in
        *" $name "*) ;;
        *) if ! there "$name" && known "$name"; then purged="$purged $name"; fi ;;
    esac
    if there "$name"; then kept="$kept $name"; fi
done
if [ -n "$purged" ]; then
    why=$out
    # shellcheck disable=SC2086
    out=$(dpkg --purge $purged 2>&1) || fail "$message" "$out"
    out=$why
fi
# one that is gone may stay in systemd's memory
# shellcheck disable=SC2086
read_units $all >/dev/null
for unit in $all; do # one that failed half installed would count as failed for ever
    systemctl cat "$unit" >/dev/null 2>&1 || systemctl reset-failed "$unit" 2>/dev/null
done
for unit in $enabled; do # of a package that stays
    if systemctl cat "$unit" >/dev/null 2>&1; then enable_units --now "$unit" 2>/dev/null; fi
done
for folder in $folders; do # the names of packages' folders have no spaces
    if ! rpm -qf "$folder" >/dev/null 2>&1; then rmdir "$folder" 2>/dev/null; fi
done
if [ -n "$kept" ]; then
    printf '%s\n' "$out" | grep -qE 'dependency problems|is needed by' || fail "$message" "$out"
    printf 'kept %s\n' $kept
fi
exit 0
