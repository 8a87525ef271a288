# The GPU of a virtual machine: it cannot be reset, so an A100's MIG mode stays pending until the next boot.
on() {
    mkdir -p /etc/sim/fail
    : > /etc/sim/fail/gpu-reset
}
off() { rm -f /etc/sim/fail/gpu-reset; }
