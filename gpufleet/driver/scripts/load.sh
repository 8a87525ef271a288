# load.sh VERSION FLAVOUR MESSAGE "MODULE MODULE" RIVAL...: unload the rivals, then load the nvidia modules of VERSION.
# FLAVOUR: open or proprietary, by the taint flag P in /proc/modules
# Prints `reboot REASON` and exits 0 if only a reboot can help.
version=$1 flavour=$2 message=$3 modules=$4; shift 4
for rival; do
    [ -d "/sys/module/$rival" ] || continue
    modprobe -r "$rival" 2>/dev/null
    if [ -d "/sys/module/$rival" ]; then
        echo "reboot $rival holds the GPU and cannot be unloaded"
        exit 0
    fi
done
loaded=$(cat /sys/module/nvidia/version 2>/dev/null)
if [ -n "$loaded" ] && [ "$loaded" != "$version" ]; then
    echo "reboot module $loaded is still loaded, $version is installed"
    exit 0
fi
taints=$(sed -n 's/^nvidia .*(\([A-Z]*\))$/\1/p' /proc/modules)
case $taints in '') there=$flavour ;; *P*) there=proprietary ;; *) there=open ;; esac
if [ "$there" != "$flavour" ]; then
    echo "reboot the $there module $loaded is still loaded, the $flavour one is installed"
    exit 0
fi
modprobe -q -a i2c_core ipmi_msghandler
# module names have no spaces: splitting is meant
# shellcheck disable=SC2086
out=$(modprobe -a $modules 2>&1)
[ "$(cat /sys/module/nvidia/version 2>/dev/null)" = "$version" ] || fail "$message" "$out"
exit 0
