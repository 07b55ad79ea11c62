"""Copies the cases of EvalSuites, runs their samples, and decides the verdicts of EvalRuns."""
