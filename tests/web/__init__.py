"""The dashboard: its server, and its page in a browser."""
