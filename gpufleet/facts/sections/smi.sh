# The GPUs that nvidia-smi lists, where the module is loaded. Parsed by hardware.py.
# After the section that looks for work on the GPUs. In the background: a GPU that hangs may hold it for
# ever, and no signal ends it then.
if [ -d /sys/module/nvidia ] && have nvidia-smi && have timeout; then
    say asked
    {
        {
            timeout -k 5 60 nvidia-smi -L 2>&1 </dev/null
            say "exit $?"
        } &
    } | timeout -k 10 70 head -c 65536
fi
