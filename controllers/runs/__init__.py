"""Accepts runs, gives them their inputs, and projects their records onto status."""
