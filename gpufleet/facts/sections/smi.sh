# The GPUs that nvidia-smi lists, where the module is loaded. Parsed by hardware.py.
# After the section that looks for work on the GPUs. In the background: a GPU that hangs may hold it for
# ever, and no signal ends it then. The state of each GPU is read where a layout is wanted or recorded; so is a
# process of NVIDIA's MIG manager, by its name in the kernel.
item=
[ -e /etc/gpufleet-gpus ] && item=1
case $configs in */etc/gpufleet-gpus*) item=1 ;; esac
if [ -d /sys/module/nvidia ] && have nvidia-smi && have timeout; then
    say asked
    {
        {
            timeout -k 5 60 nvidia-smi -L 2>&1 </dev/null
            text=$?
            [ "$item" ] && [ $text = 0 ] && timeout -k 5 20 nvidia-smi --format=csv,noheader,nounits \
                --query-gpu=index,pci.bus_id,mig.mode.current,mig.mode.pending,power.limit,power.default_limit,power.min_limit,power.max_limit,clocks.max.sm,clocks.max.mem,compute_mode,ecc.mode.current,ecc.mode.pending \
                </dev/null | sed 's/^/state /'
            # the number of a GPU's device node is not always its index
            [ "$item" ] && grep -sH '^Device Minor' /proc/driver/nvidia/gpus/*/information | sed 's/^/minor /'
            [ "$item" ] && grep -qsx nvidia-mig-mana /proc/[0-9]*/comm && say manager
            say "exit $text"
        } &
    } | timeout -k 10 90 head -c 65536
fi
