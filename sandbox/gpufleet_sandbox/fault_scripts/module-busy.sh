# The kernel itself uses the module: no process has it open.
on() { echo 1 > /etc/sim/refcnt/nvidia; }
off() { rm -f /etc/sim/refcnt/nvidia; }
