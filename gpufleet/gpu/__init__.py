"""Layout and settings of the GPUs of a host: MIG, power, clocks, compute mode, ECC."""
