# unfinished.sh HOME ROLE...: what runs have left in HOME, gpufleet's folder: `there` if it has more than copies,
# `begun ROLE NAME` for packages of an unrecorded transaction (`begun ROLE` if it installed only a key),
# `written PATH` for written files, `image NAME` for pulled images.
home=$1; shift
[ -d "$home" ] || exit 0
[ -z "$(find "$home" -mindepth 1 -path "$home/backup" -prune -o -print 2>/dev/null | head -n 1)" ] || echo there
for role; do
    [ ! -s "$home/$role.before.ours" ] || echo "begun $role"
    [ ! -e "$home/$role.before.begun" ] || sed "s/^/begun $role /" "$home/$role.before.begun"
done
[ ! -e "$home/written" ] || cut -f1 "$home/written" | sort -u | while IFS= read -r path; do
    case $path in "$home"/*) continue ;; esac
    [ ! -e "$path" ] || printf 'written %s\n' "$path"
done
[ ! -e "$home/exporter.images" ] || sed 's/^/image /' "$home/exporter.images"
exit 0
