"""Datagrams in, datagrams out, over UDP. Knows no protocol and no group."""
