"""Claims runs, renews their leases, resumes them and ends them in time; implements the engine's ports."""
