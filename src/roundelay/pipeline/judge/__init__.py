"""Verdicts on every run of a table, the same as those of the local checker.

small_runs     runs that one task reads and judges as they stand
plan           which properties of a run are open, and on which slices they are judged
slices         slices: parts of a run that a task can hold
slice_verdicts the local checker's properties on the rows of a slice, and verdicts put together
joins          S5 and K4 of runs that are too large to be judged in one piece
completeness   whether all rows of a run are there: problems of a trace, and T1
traits         what kinds of rows a run has
run_check      one run: what is proved, what is judged, what follows
check          the command: every run of a table
verdict_table  verdicts as a Parquet file
witness        the rows around a witness, for a picture of it
"""
