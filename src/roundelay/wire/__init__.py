"""Frames to bytes and back: primitives, the frame header, and a node's endpoint.

Pure. Any bytes may come in; what makes no sense raises WireError with a reason to count.
"""
