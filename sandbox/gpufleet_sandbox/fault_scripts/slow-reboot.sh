# Slow firmware: each boot takes 20 seconds longer.
on() { echo 20 > /etc/sim/slow-boot; }
off() { rm -f /etc/sim/slow-boot; }
