# nouveau is installed, loaded now and early in each boot, and in use by the console.
RELEASE=$(uname -r)
FOLDER=/lib/modules/$RELEASE/kernel/drivers/gpu/drm/nouveau
rebuild() {
    depmod "$RELEASE"
    if command -v dracut > /dev/null; then
        dracut --force
    else
        update-initramfs -u > /dev/null
    fi
}
on() {
    echo 1 > /etc/sim/refcnt/nouveau
    if [ ! -e "$FOLDER/nouveau.ko" ]; then
        mkdir -p "$FOLDER"
        cp "/usr/lib/sim/kernels/extra/$RELEASE/nouveau.ko" "$FOLDER/"
        touch "$FOLDER/added-by-fault"
        rebuild
    fi
    # insmod: ignores the blacklist of a driver package in modprobe.d
    if [ ! -d /sys/module/nvidia ] && [ ! -d /sys/module/nouveau ]; then
        modprobe drm
        insmod "$FOLDER/nouveau.ko"
    fi
}
off() {
    rm -f /etc/sim/refcnt/nouveau
    if [ -d /sys/module/nouveau ]; then rmmod nouveau; fi
    if [ -e "$FOLDER/added-by-fault" ]; then
        rm -rf "$FOLDER"
        rebuild
    fi
}
