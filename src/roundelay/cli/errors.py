"""The exception whose message the user sees."""


class UserError(Exception):
    """Its message is printed, and the exit code is 2. Say what is wrong and what to do next."""
