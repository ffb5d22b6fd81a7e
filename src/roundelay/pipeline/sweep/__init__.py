"""Sweeps: many cells of an experiment, run on executors.

    waves    cells into tasks, and tasks into waves, the costliest first
    work     what an executor does with a cell
    store    the directory of a sweep: what is done, and the table at the end
    drive    the loop: waves are handed to Spark, and their rows to the store

`experiments.plan` reads the TOML file that says which cells there are.

`docs/sweeps.md` is for those who write plans.
"""
