"""One HTML file of what was found: claims, figures, verdicts, timelines and diagrams.

The file needs nothing but a browser: no network, no other file. CSV and PNG files lie beside it.

    write    `write_report`: looks what is in a directory, and writes all of it down
    sweeps   the section of a sweep: claims beside their figures, and a plot to play with
    runs     the section of traces: verdicts, measures, view timelines, space-time diagrams
    evidence reading runs from tables and traces
    plots    what the script in `page` draws, as data
    html     elements, and the page around them
"""

from roundelay.report.write import write_report

__all__ = ["write_report"]
