"""Streams investigations to clients as they change, by WebSocket or server-sent events."""
