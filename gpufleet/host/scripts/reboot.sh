# reboot.sh SPARE: reboot. With SPARE not while something uses the GPUs: that is printed, and the exit status is 3.
if [ -n "$1" ]; then
    work=$(gpu_work)
    if [ -n "$work" ]; then printf '%s\n' "$work"; exit 3; fi
fi
# systemd 257 and newer obey inhibitors of shutdowns for root, too:
# https://github.com/systemd/systemd/pull/30307 (2024-07-26)
said=$(systemctl reboot 2>&1) || [ "$(systemctl is-system-running 2>/dev/null)" = stopping ] || {
    printf '%s\n' "$said" | head -n 1 >&2
    exit 1
}
exit 0
