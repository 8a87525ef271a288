# packages_added.sh FILE: the packages that transactions of gpufleet brought since FILE was written, also half
# done ones; not what others installed meanwhile.
file=$1 ours=$1.ours
[ -e "$ours" ] || ours=$1.begun # of an earlier version: what it asked for by name
if [ -e "$file" ] && [ -e "$ours" ]; then
    packages_there | comm -13 "$file" - | grep -Fx -f "$ours"
fi
exit 0
