"""Claims runs, keeps their leases, resumes them, ends them in time; binds the engine's ports to the world."""
