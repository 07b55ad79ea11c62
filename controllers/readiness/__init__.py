"""Decides whether configuration objects are Ready: providers, tool servers, reach, masking. Records when they were."""
