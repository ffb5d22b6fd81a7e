"""One folder for each paper, all with the same modules.

    __init__.py   which paper it is
    runs.py       `Cell` and `run(cell, seed)`: the paper's model, as an experiment
    plan.toml     which cells are run; [quick] makes a shorter choice
    claims.py     `claims_of(results)`: every claim of the paper, judged by the results
    figures.py    `figures_of(results)`: the paper's figures; left out if it has none
    results.py    what claims and figures look up; left out if there is little of it
    formulas.py   what the paper computes without any run; left out if that is nothing

`experiments.registry` finds a folder by its name, so a new paper needs no entry in any list.
"""
