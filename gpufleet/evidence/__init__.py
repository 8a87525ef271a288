"""Evidence: what hosts and clusters have at a time of trouble, in one archive."""
