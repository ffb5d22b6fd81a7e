"""The offline checker."""
