# Who holds the lock of the package manager. Parsed by packages.py.
# Advisory locks are found by inode; yum and dnf write their process id into a file. Package managers
# lock by fcntl: a flock is not in their way.
locks=
for lock in /var/lib/dpkg/lock-frontend /var/lib/dpkg/lock /var/lib/apt/lists/lock \
    /var/cache/apt/archives/lock /var/lib/rpm/.rpm.lock; do
    [ -e "$lock" ] && locks="$locks$nl$lock"
done
IFS=$nl
inodes=
[ "$locks" ] && inodes=$(stat -c %i $locks)
IFS=$blank
while read -r number kind advice mode pid place text; do
    [ "$inodes" ] && [ "$kind" != FLOCK ] && [ "$mode" = WRITE ] || continue
    case "$nl$inodes$nl" in *"$nl${place##*:}$nl"*) ;; *) continue ;; esac
    for path in /proc/"$pid"/fd/*; do
        IFS=$nl
        for lock in $locks; do
            [ "$path" -ef "$lock" ] && line "/proc/$pid/comm" && say "$pid $line" && break 2
        done
    done
    IFS=$blank
done </proc/locks
IFS=$blank
for path in /var/run/yum.pid /run/zypp.pid /var/cache/dnf/metadata_lock.pid \
    /var/lib/dnf/rpmdb_lock.pid; do
    line "$path"
    case $line in '' | *[!0-9]*) continue ;; esac
    [ -r "/proc/$line/comm" ] && pid=$line && line "/proc/$pid/comm" && say "$pid $line"
done
