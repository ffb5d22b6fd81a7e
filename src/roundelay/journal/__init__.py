"""The journal of a node: its log as segment files on disk.

PATH/GROUP/  lock  identity  machine
             log/00000000000000000000.log ...   .idx beside a finished segment
             log/aside/                         what was damaged, for people
             snapshots/00000000000000104857.snap   .damaged: set aside, for people
             reserve                            16 MB, given up when the disk is full

errors       what can go wrong, in sentences
files        the calls to the operating system; others that lose what was not synced, for tests
policy       when a record counts as stored
frame        records in a file: lengths, checksums, what else each one carries
segment      one file: header, sparse index, reading
directory    lock, owner, and what is known of the machine
recovery     what a start finds, and what it does about torn and damaged files
journal      the journal of a running node, which writes
snapshots    files of the application's state
reader       entries for other processes, while the journal is written
inspect      every checksum; repairs of a torn tail; a new generation
"""
