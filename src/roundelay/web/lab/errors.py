"""What the laboratory cannot do."""


class LaboratoryError(Exception):
    """A request that cannot be answered; its message is a sentence for the reader of the page."""
