# lock_holder.sh: the process that holds a lock of the package manager, as `name (pid)`, or as `name (pid, by
# FILE)` if only the number in FILE shows it; else nothing.
holder() { # PID [WHERE]: nothing for a process that has ended
    name=$(cat "/proc/$1/comm" 2>/dev/null) || return 1
    printf '%s (%s%s)\n' "$(printf '%s' "$name" | tr -c '[:print:]' '?')" "$1" "${2:-}"
}
opened() { # PID FILE: whether the process has that very file open; a file elsewhere may have its inode number
    for open in "/proc/$1/fd/"*; do [ ! "$open" -ef "$2" ] || return 0; done
    return 1
}
for lock in /var/lib/dpkg/lock-frontend /var/lib/dpkg/lock /var/lib/apt/lists/lock \
    /var/cache/apt/archives/lock /var/lib/rpm/.rpm.lock; do
    [ -e "$lock" ] || continue
    # apt, dpkg and rpm lock by fcntl; a flock, which any reader of the file can take, does not block them
    for pid in $(awk -v inode="$(stat -L -c %i "$lock")" '
        $2 != "FLOCK" && $5 > 0 { n = split($6, part, ":"); if (part[n] == inode) print $5 }' /proc/locks); do
        if opened "$pid" "$lock" && holder "$pid"; then exit 0; fi
    done
done
# yum and dnf consider any process of that number as their run, even if the number was reused
for file in /var/run/yum.pid /var/cache/dnf/metadata_lock.pid /var/lib/dnf/rpmdb_lock.pid; do
    [ -s "$file" ] || continue
    IFS=' ' read -r pid _ <"$file" || [ -n "$pid" ] || continue
    case $pid in '' | *[!0-9]*) continue ;; esac
    if holder "$pid" ", by $file"; then exit 0; fi
done
exit 0
