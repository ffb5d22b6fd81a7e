"""Every run of a small group under an assumption about failures, on the engine itself.

cases     which runs there are: who fails, and which copies of decisions are lost or late
driver    a group of engines whose frames and timers are in one's hand
play      one case, turn by turn, and whether members then disagree
survey    many cases, over several processes, counted
story     a case as a scenario
"""
