# put_state.sh FILE TEXT: TEXT is the content of FILE, whole or not at all, and on the disk when this ends.
umask 077
mkdir -p -m 700 "${1%/*}" && printf '%s\n' "$2" >"$1.new" || exit 1
sync "$1.new" 2>/dev/null || sync
mv "$1.new" "$1" || exit 1
sync "${1%/*}" 2>/dev/null || sync
