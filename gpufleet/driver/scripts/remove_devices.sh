# remove_devices.sh "SPEC..." "UNIT..." MODULE...: once the nvidia modules are unloaded, remove the device files
# and the CDI specs, which UNITs would write again, and unload each MODULE that nothing else uses.
# Prints `loaded` if the nvidia modules could not be unloaded.
specs=$1 units=$2; shift 2
# names of units and specs have no spaces: splitting is meant
for unit in $units; do systemctl stop "$unit" || exit 1; done
for spec in $specs; do
    rm -f "$spec" || exit 1
    rmdir "$(dirname "$spec")" 2>/dev/null
done
if [ -d /sys/module/nvidia ]; then echo loaded; exit 0; fi
rm -rf /dev/nvidia[0-9]* /dev/nvidiactl /dev/nvidia-uvm /dev/nvidia-uvm-tools /dev/nvidia-modeset \
    /dev/nvidia-nvswitch* /dev/nvidia-nvlink /dev/nvidia-caps
for module; do rmmod "$module" 2>/dev/null; done
exit 0
