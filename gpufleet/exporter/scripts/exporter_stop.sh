# exporter_stop.sh LIST UNIT...: stop and disable the units; remove the images in LIST ("": none).
# An image that is in use by others stays.
list=$1; shift
for unit; do
    disable_units "$unit" 2>/dev/null
    systemctl stop "$unit"
    if systemctl is-active -q "$unit"; then fail "$unit does not stop"; fi
    systemctl reset-failed "$unit" 2>/dev/null
done
[ -n "$list" ] && [ -e "$list" ] && has docker || exit 0
while IFS= read -r image; do
    docker rmi "$image" >/dev/null 2>&1 || printf 'kept image %s\n' "$image"
done <"$list"
rm -f "$list"
