"""The HTTP server: probes now; intake, REST and WebSocket are to come."""
