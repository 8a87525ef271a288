# lock_holder.sh: the process that holds a lock of the package manager, as `name (pid)`; else nothing.
for lock in /var/lib/dpkg/lock-frontend /var/lib/dpkg/lock /var/lib/apt/lists/lock \
    /var/cache/apt/archives/lock /var/lib/rpm/.rpm.lock; do
    [ -e "$lock" ] || continue
    inode=$(stat -c %i "$lock")
    pid=$(awk -v inode="$inode" '{ n = split($6, part, ":"); if (part[n] == inode && $5 > 0) { print $5; exit } }' /proc/locks)
    if [ -n "$pid" ]; then
        printf '%s (%s)\n' "$(cat "/proc/$pid/comm" 2>/dev/null)" "$pid"
        exit 0
    fi
done
for file in /var/run/yum.pid /var/cache/dnf/metadata_lock.pid; do
    [ -s "$file" ] || continue
    pid=$(cat "$file")
    if [ -d "/proc/$pid" ]; then
        printf '%s (%s)\n' "$(cat "/proc/$pid/comm")" "$pid"
        exit 0
    fi
done
exit 0
