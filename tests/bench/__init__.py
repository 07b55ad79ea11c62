"""Benchmarks of the whole product on one machine: they measure and print, and never assert (`make bench`).

What is measured is the operator as people run it, a process of its own against a real API server and a durable
Postgres. The model and the tool server are processes of their own as well, so that what they cost is not counted.
"""
