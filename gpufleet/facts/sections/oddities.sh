# Drivers that came without packages, by $libraries, $ondisk and $carried. Parsed by drivers.py.

# owner KIND PATH...: what the package manager says of a file of the driver. Paths under /lib and
# /usr/lib are the same file on most hosts, and dpkg knows one of them.
owner() {
    say "asked $1 $2"
    shift
    [ "$carried" -gt 0 ] || return
    set -- "$1" $(readlink -f "$1")
    if [ "$format" = rpm ]; then
        rpm -qf --nodigest --nosignature --qf '%{NAME}\n' "$@" 2>&1
    else
        for item; do
            case $item in
                /usr/lib*) set -- "$@" "${item#/usr}" ;;
                /lib*) set -- "$@" "/usr$item" ;;
            esac
        done
        dpkg-query -S "$@" 2>&1
    fi | sed 's/^/answer /'
}

[ -x /usr/bin/nvidia-uninstall ] && say "runfile uninstaller"
[ -e /var/log/nvidia-installer.log ] && say "runfile log"
count /run/nvidia/driver/*
[ "$total" -gt 0 ] && say operator-driver
# Where images, clouds and their installers put a driver.
for path in /usr/local/nvidia/lib64 /usr/local/nvidia/lib /opt/nvidia/lib64 /opt/nvidia/lib \
    /var/lib/nvidia/lib64 /var/lib/nvidia/lib /usr/local/lib64 /usr/local/lib; do
    count "$path"/libnvidia-ml.so.[0-9]*.[0-9]*
    [ "$total" -gt 0 ] || continue
    say "driver $path"
    libraries="$libraries $(exist "$path"/libnvidia-ml.so.[0-9]*.[0-9]*)"
done
# Whose the driver is, where no usual package has it.
case $carried in 0 | 1 | 3)
    # The loader may know of a library elsewhere, whose folder may be of another machine.
    if [ -z "$libraries" ] && [ -d /sys/module/nvidia ]; then
        for path in $(grep -aoE '/[!-~]+/libnvidia-ml\.so\.1' /etc/ld.so.cache); do
            case $path in
                /usr/* | /lib/* | /lib64/*) [ -e "$path" ] && libraries="$libraries $path" ;;
                *) say "cache $path" ;;
            esac
        done
    fi
    for path in $libraries; do owner library "$path"; done
    ;;
esac
case $ondisk$carried in yes[012])
    path=$(modinfo nvidia nvidia-current | sed -n 's/^filename: *//p' | head -n 1)
    owner module "$path"
    for path in $(exist /var/lib/dkms/nvidia*/*/source); do owner source "$(readlink -f "$path")"; done
    ;;
esac
