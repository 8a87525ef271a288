# Firmware that takes its time: 20 seconds more at each boot.
on() { echo 20 > /etc/sim/slow-boot; }
off() { rm -f /etc/sim/slow-boot; }
