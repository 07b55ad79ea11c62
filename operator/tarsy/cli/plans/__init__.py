"""Plans investigations from files or in the cluster, and prints the plans."""
