"""Sweeps: many cells of an experiment, run on executors.

    plan     a TOML file into cells: which experiment, which parameters, which seeds
    waves    cells into tasks, and tasks into waves, dearest first
    work     what an executor does with a cell
    store    the directory of a sweep: what is done, and the table at the end
    drive    the loop that puts them together

`docs/sweeps.md` is for those who write plans.
"""
