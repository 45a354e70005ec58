"""The one way in which a build fails."""


class Failure(Exception):
    """Something outside the code is wrong; the message is one line that says what, where and what to do."""
