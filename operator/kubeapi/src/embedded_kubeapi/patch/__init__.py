"""Implements patches: JSON merge patch, JSON patch, strategic merge patch, and managed fields."""
