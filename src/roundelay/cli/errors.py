"""The one exception that reaches the user."""


class UserError(Exception):
    """Printed as one sentence, exit code 2. Say what is wrong and what to do next."""
