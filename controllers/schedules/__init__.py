"""Decides about the times of AlertSchedules, and creates their Alerts."""
