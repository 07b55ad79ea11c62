"""Measures suites of cases on this machine, and reads and writes them as files."""
