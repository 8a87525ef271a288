#!/bin/sh
# Did a GPU fall off the bus? Either it does not answer there now, or the driver said so.
#   gpu-bus.sh SECONDS
set -u
# shellcheck source=kernel-log.sh
. "${0%/*}/kernel-log.sh"

for device in "$root"/sys/bus/pci/devices/*; do
    [ "$(cat "$device/vendor")" = 0x10de ] || continue
    case $(cat "$device/class") in
    0x0300* | 0x0302*) ;;
    *) continue ;;
    esac
    # what is not there reads as ones
    start=$(od -An -tx1 -N2 "$device/config") || answer 2 "${device##*/}: cannot read its config"
    [ "$start" != " ff ff" ] || answer 1 "${device##*/} does not answer on the bus"
done

messages "$1"
last=
while read -r text; do
    case $text in
    "NVRM: Xid ("*"): 79,"* | *"fallen off the bus"*) last=${text#NVRM: } ;;
    esac
done <<MESSAGES
$found
MESSAGES
[ -z "$last" ] || answer 1 "$last"
answer 0 "every GPU answers on the bus"
