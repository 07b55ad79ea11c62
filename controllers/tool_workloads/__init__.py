"""Runs MCPServers with spec.run as workloads of the cluster."""
