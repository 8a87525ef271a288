# exporter_stop.sh LIST UNIT...: stop the units and keep them from starting again; take away the images
# that LIST names ("": none). An image that somebody else uses by now stays.
list=$1; shift
for unit; do
    systemctl -q --no-reload disable "$unit" 2>/dev/null
    systemctl stop "$unit"
    if systemctl is-active -q "$unit"; then fail "$unit does not stop"; fi
    systemctl reset-failed "$unit" 2>/dev/null
done
[ -n "$list" ] && [ -e "$list" ] && has docker || exit 0
while IFS= read -r image; do
    docker rmi "$image" >/dev/null 2>&1 || printf 'kept image %s\n' "$image"
done <"$list"
rm -f "$list"
