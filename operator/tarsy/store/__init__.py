"""Stores the record in Postgres: migrations and named queries in `.sql` files, and the modules that run them.

`Runs` accepts and ends investigations, `Claims` hands them to workers, `RunWriter` writes the steps of one attempt
under its fence, `Reads` reads them back. Postgres alone decides which attempt may write a run.
"""
