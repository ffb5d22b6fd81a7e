"""The papers, measured: what each one claims, and what comes out in the simulator.

registry      papers and experiments by name
papers/NAME   one paper: its runs, its plan, its claims and figures
load          an experiment that belongs to no paper: any engine under a load
plan          plans: TOML files that say which cells of an experiment are run
cells         runs the cells of a plan in several processes of this machine
claims        a claim next to what was measured, and tables of claims
figures       series of points, as CSV files and as plots
meter         throughput, latency and rotation time from the rows of a run
lifetimes     delivery time and stability time from the rows of a run
"""
