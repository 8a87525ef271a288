# The boot, the machine, the user, and whose run holds the lock. Parsed by identity.py.
line /proc/sys/kernel/random/boot_id
say "boot $line"
line /etc/machine-id
say "machine $line"
user=
while read -r key user text; do
    [ "$key" = Uid: ] && break
done </proc/self/status
say "user $user"
# First the last holder, then whether the lock is held: of a run that begins after this line, another
# name will stand there.
line /run/gpufleet.lock
say "run $line"
# A step of a run that was killed goes on without it, and holds the second file.
for path in /run/gpufleet.lock /run/gpufleet.lock.steps; do
    [ -e "$path" ] || continue
    flock -s -n "$path" true
    [ $? -eq 1 ] && say "held" && break
done
