"""Traces into a table: the files of many runs become one typed Parquet table.

sources      which files make up the traces that a user named, and their manifests
decode       what an executor does with a file: its rows, typed, and those that make no sense
into_table   the job: sources are surveyed, decoded and written as a new part of the table
table        the table on disk: its parts, its events, its quarantine
"""
