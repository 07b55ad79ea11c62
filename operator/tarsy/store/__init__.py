"""The record in Postgres: migrations and named queries as `.sql` beside the few modules that run them.

`Runs` accepts and ends investigations, `Claims` hands them to workers, `RunWriter` writes the steps of one attempt
under its fence, `Reads` reads them back. Whoever may write a run is decided in Postgres alone (DESIGN section 5).
"""
