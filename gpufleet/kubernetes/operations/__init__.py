"""What is carried out on hosts and on the control plane."""
