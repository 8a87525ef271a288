# packages_added.sh FILE: the packages that transactions of gpufleet installed since FILE was written, including
# half-installed ones; not those that others installed meanwhile.
file=$1 ours=$1.ours
[ -e "$ours" ] || ours=$1.begun # of an earlier version: what it asked for by name
if [ -e "$file" ] && [ -e "$ours" ]; then
    packages_there | comm -13 "$file" - | grep -Fx -f "$ours"
fi
exit 0
