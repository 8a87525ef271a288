# hold_host.sh FILE SEEN TEXT INCOMING: hold the lock on FILE, in which SEEN must stand, or TEXT where this run
# held it before; it contains TEXT from then on. It is held until the run ends. However that ends, its
# connection does: the line that is sent each second cannot be delivered then. What it had begun on the host
# may go on: each of its steps holds FILE.steps, and there is no lock before the last one has ended. `held
# TEXT` and `changed TEXT`: why there is no lock. What a run that was killed has left in the folder INCOMING, perhaps a
# login or a token, is removed.
file=$1 seen=$2 text=$3 incoming=$4
first=''
umask 077
exec 9>>"$file" || exit 1
if ! flock -w 3 9; then
    IFS= read -r first <"$file"
    printf 'held %s\n' "$first"
    exit 1
fi
IFS= read -r first <"$file"
exec 8>>"$file.steps" || exit 1
if ! flock -s -w 3 8; then
    printf 'held %s\n' "$first"
    exit 1
fi
exec 8>&-
if [ "$first" != "$seen" ] && [ "$first" != "$text" ]; then
    printf 'changed %s\n' "$first"
    exit 1
fi
if [ "$first" != "$text" ]; then find "$incoming" -mindepth 1 -delete 2>/dev/null; fi
printf '%s\n' "$text" >"$file" || exit 1
while printf '.\n'; do sleep 1 9>&-; done 2>/dev/null
