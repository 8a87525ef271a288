# The clock. Parsed by identity.py.
date '+clock %s'
