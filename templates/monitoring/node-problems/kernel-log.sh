# shellcheck shell=sh
# What the NVIDIA driver wrote to the kernel's log; the other scripts read this one in.
# HOST_ROOT: where the node's file system is mounted, with its /dev, /proc and /sys.

root=${HOST_ROOT-/host}

# answer CODE TEXT: end with a code of Node Problem Detector (0 fine, 1 problem, 2 unknown).
answer() {
    printf '%.80s\n' "$2"
    exit "$1"
}

# messages SECONDS: the driver's messages of so long ago or less, since it was loaded, as $found.
# Records of /dev/kmsg are "level,number,microseconds since boot,flags;text"; a level above 7 was
# written by a program. dd ends when there are no more records; reading on would wait for them.
messages() {
    log=$(dd if="$root/dev/kmsg" bs=8192 iflag=nonblock 2>/dev/null)
    [ -n "$log" ] || answer 2 "the kernel's log cannot be read"
    read -r uptime _ <"$root/proc/uptime" || answer 2 "the uptime cannot be read"
    since=$(((${uptime%%.*} - $1) * 1000000))
    found=
    while read -r at text; do
        case $text in
        "NVRM: loading NVIDIA UNIX"*) found= ;;
        NVRM:*) [ "$at" -lt "$since" ] || found="$found$text
" ;;
        esac
    done <<RECORDS
$(printf '%s\n' "$log" | sed -n 's/^[0-7],[0-9]*,\([0-9]*\),[^;]*;NVRM/\1 NVRM/p')
RECORDS
}
