# host_holder.sh FILE: who holds the lock on FILE, as it says itself; nothing where it is free.
[ -e "$1" ] || exit 0
flock -s -n "$1" true
[ $? -eq 1 ] || exit 0
head -n 1 "$1"
