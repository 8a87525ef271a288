# NVIDIA's devices. Parsed by hardware.py.
IFS=$nl
for path in $(grep -ls 0x10de /sys/bus/pci/devices/*/vendor); do
    path=${path%/vendor}
    line "$path/device"
    device=$line
    line "$path/class"
    class=$line
    driver=-
    cd -P "$path/driver" && driver=${PWD##*/}
    # The width of the link is read from the device: all ones of one that no longer answers, and of one
    # that sleeps.
    line "$path/current_link_width"
    width=${line:--}
    line "$path/power/runtime_status"
    [ "$line" = suspended ] && width=-
    say "${path##*/} $device $class $driver $width"
done
IFS=$blank
cd /
# The driver keeps those that fell off the bus.
for path in /proc/driver/nvidia/gpus/*; do
    [ -d "$path" ] && say "taken ${path##*/}"
done
