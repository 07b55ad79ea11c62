"""What operators see of the operator: logs."""
