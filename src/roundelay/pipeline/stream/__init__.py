"""The ordered log of a group in Spark: `format("roundelay")` reads it and appends to it.

options     what users may give, and what is wrong with it
replicas    the journals of several nodes as alternatives for one log
columns     packets of a journal as Arrow batches
payloads    payloads as text, JSON or Arrow
source      batch and stream reader
staging     what tasks leave for the driver, and the manifest that fixes it
encode      rows as payloads
sink        appends each row of a streaming query once
format      what Spark knows as `roundelay`, and how it gets to know it
"""
