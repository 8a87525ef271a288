# Secure Boot as reported by the firmware, now and after reboots.
EFIVAR=/run/sim/firmware/efi/efivars/SecureBoot-8be4df61-93ca-11d2-aa0d-00e098032b8c
set_to() {
    printf %s "$1" > /etc/sim/secure-boot
    printf %s "$1" > /run/sim/secure-boot
    printf "\\006\\000\\000\\000\\00$1" > $EFIVAR
}
on() { set_to 1; }
off() { set_to 0; }
