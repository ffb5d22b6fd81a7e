"""Proofs: what can be shown of a run of any size without sorting its rows.

One pass over the table turns every batch of rows into a few numbers, called facts; the facts of a
run together prove properties of it. A property that is not proved is open, and `judge` decides it.

    arrays         a batch of rows as numpy arrays
    batch_facts    the facts of a batch: how its rows are numbered, its keys, its fingerprints
    span_facts     the facts of a batch: which messages were sent and delivered, as spans of numbers
    intervals      sets of whole numbers as sorted spans
    writer_logs    how many rows each node wrote, from the facts of a run
    views          who was in which view, from the facts of a run
    streams        what each node sent in each view, and who delivered it
    transitional   deliveries in transitional views
    view_order     what views and keys prove together: O5w, O8, O10
    causality      what streams prove of causes and effects: O1r, O2, O2r, O9, O11
    stitch         the facts of a run put together, and everything that they prove
    certify        the Spark jobs: facts of the whole table, and a closer look where nodes differ
"""
