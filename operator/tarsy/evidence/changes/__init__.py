"""Finds changes of objects, and ranks them as candidates for the cause of an alert."""
