# replace.sh STAGED PATH KEPT: replace a package's file at PATH by STAGED; KEPT is a copy of the first one.
[ -e "$3" ] || cp -p "$2" "$3" || exit 1
chmod 644 "$1" && mv -f "$1" "$2" || exit 1
if has restorecon; then restorecon "$2"; fi
exit 0
