# The driver packages' own Makefile looks for this file and fails, as on a kernel it does not know.
on() { touch /etc/sim/fail/dkms; }
off() { rm -f /etc/sim/fail/dkms; }
