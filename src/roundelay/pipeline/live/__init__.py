"""The traces of nodes that still run: followed into a table, and judged while they grow.

trails       the traces in some directories: how far each can be read, and what is new since then
source       the same as a stream of Spark, whose offset says how far each was read
follow       what is new goes into a table, as `ingest` would put it there
merge        the rows of several nodes in one order, as far as none can come before them
measures     rates, latencies and changes of view, by the second
judge        the verdicts on one run while it goes on
states       what is known after each batch, on disk
watch        what is new goes to the judges
"""
