"""Random runs of ST with losses, on the engine itself: the same ones under the rules of the paper
and under the safe rules.

cases     which runs there are: who sends what to whom, and who misses it
orders    what can be wrong with the order
play      one case in the simulator, and what is wrong then
survey    many cases, over several processes, counted
story     a case as a scenario
"""
