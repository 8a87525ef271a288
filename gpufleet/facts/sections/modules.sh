# Loaded modules. Parsed by hardware.py.
grep -sE '^(nvidia|nouveau|nova|i2c_core |ipmi_msghandler |ipmi_devintf )' /proc/modules
say
for path in /sys/module/nvidia* /sys/module/nouveau /sys/module/nova* \
    /sys/module/i2c_core /sys/module/ipmi_msghandler /sys/module/ipmi_devintf; do
    [ -d "$path" ] || continue
    line "$path/version"
    version=$line
    line "$path/refcnt"
    say "module ${path##*/} ${line:--} $version"
done
