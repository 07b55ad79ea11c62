"""Reads the record for people and programs: lists, search, traces, reports."""
