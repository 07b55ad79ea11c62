"""Turns cases of public benchmarks into cassettes and expectations, one file per format.

A parser is a function of the files of one case (`source.CaseFolder`), which the command reads and bounds. Nothing here
opens a file. To add a format, write its file and a line in `formats`.
"""
