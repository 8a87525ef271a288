#!/bin/sh
# Are the driver's loaded module and its library of one version? After an upgrade they are not
# until the module is reloaded, and every new program fails.
set -u
# shellcheck source=kernel-log.sh
. "${0%/*}/kernel-log.sh"

module=$(sed -n 's/.*Kernel Module\( for [^ ]*\)\{0,1\}  *\([0-9][0-9.]*\).*/\2/p' \
    "$root/proc/driver/nvidia/version" 2>/dev/null)
[ -n "$module" ] || answer 2 "no module of NVIDIA's is loaded"

# A driver in a container has its libraries below /run/nvidia/driver, and they count.
for base in "$root/run/nvidia/driver" "$root"; do
    libraries=
    for folder in "$base"/usr/lib/*-linux-gnu "$base"/usr/lib64 "$base"/usr/lib \
        "$base"/usr/lib/*-linux-gnu/nvidia/current; do
        # the name that programs ask for decides which one they get, where others were left
        target=$(readlink "$folder/libnvidia-ml.so.1")
        case $target in
        libnvidia-ml.so.*.*) libraries="$libraries ${target#libnvidia-ml.so.}" ;;
        esac
    done
    [ -z "$libraries" ] || break
done
[ -n "$libraries" ] || answer 2 "module $module is loaded, and no library of NVIDIA's was found"
for library in $libraries; do
    [ "$library" = "$module" ] || answer 1 "module $module is loaded, the library is $library"
done
answer 0 "module and library are $module"
