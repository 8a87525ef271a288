#!/bin/sh
# Has every GPU of the node its driver and its device node, and are the others there?
#   gpu-devices.sh NAME...   (names in /dev, beside those of the GPUs)
# GPUs that were given to another driver (vfio-pci) or excluded are not looked at.
set -u
# shellcheck source=kernel-log.sh
. "${0%/*}/kernel-log.sh"

any=
for device in "$root"/sys/bus/pci/devices/*; do
    [ "$(cat "$device/vendor")" = 0x10de ] || continue
    case $(cat "$device/class") in
    0x0300* | 0x0302*) ;;
    *) continue ;;
    esac
    [ ! -e "$device/physfn" ] || continue # a virtual function
    address=${device##*/}
    driver=$(readlink "$device/driver") || answer 1 "GPU $address has no driver"
    [ "${driver##*/}" = nvidia ] || continue
    any=yes
    about=$root/proc/driver/nvidia/gpus/$address/information
    [ -r "$about" ] || answer 1 "the driver did not take GPU $address"
    ! grep -q '^GPU Excluded:[[:space:]]*Yes' "$about" || continue
    minor=$(sed -n 's/^Device Minor:[[:space:]]*\([0-9][0-9]*\).*/\1/p' "$about")
    [ -n "$minor" ] || answer 2 "GPU $address: its device's number is not known"
    [ -e "$root/dev/nvidia$minor" ] || answer 1 "GPU $address: /dev/nvidia$minor is missing"
done
[ -n "$any" ] || answer 0 "no GPU for NVIDIA's driver"
for name; do
    [ -e "$root/dev/$name" ] || answer 1 "/dev/$name is missing"
done
answer 0 "every device node is there"
