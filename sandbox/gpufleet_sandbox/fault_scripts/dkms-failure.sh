# The Makefile of the driver packages fails if this file exists, as on an unsupported kernel.
on() { touch /etc/sim/fail/dkms; }
off() { rm -f /etc/sim/fail/dkms; }
