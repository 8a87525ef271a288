# The board refuses other power limits; nvidia-smi then prints a warning and ends with 0.
on() {
    mkdir -p /etc/sim/fail
    : > /etc/sim/fail/power-limit
}
off() { rm -f /etc/sim/fail/power-limit; }
