# unfinished.sh HOME ROLE...: what runs have left in HOME, which is gpufleet's: `there` where it holds more than copies,
# `begun ROLE NAME` for packages of a transaction that is not on record (`begun ROLE` where a key alone came),
# `written PATH` for files that were put
# in place, `image NAME` for those that docker pulled.
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
