"""Changes to objects: JSON merge patch, JSON patch, strategic merge patch, and who manages which field."""
