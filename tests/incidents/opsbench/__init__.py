"""Makes incidents of our own into cases of the form of Cloud-OpsBench, on which its reader is tested."""
