"""Measures of every run of a table: how long things took, what they cost, who did the work.

times       latencies, and what failures and view changes cost
amounts     frames and bytes for what was delivered; how evenly the work is spread
occupancy   how many messages every node holds over time
words       what each of them means, for people
measure     the command: all of these for a table, as Parquet and as CSV
"""
