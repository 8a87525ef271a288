"""Operations on hosts and on the control plane."""
