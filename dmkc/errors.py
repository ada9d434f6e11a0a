"""Mistakes of a user, told apart from failures of dmkc or of a library below it."""


class UserError(ValueError):
    """The use or the input is wrong; the text is one sentence that says what and what to do.

    Only dmkc's own checks raise it: any other ValueError is a failure.
    """


class UserTypeError(UserError, TypeError):
    """The same where something of another type was expected."""
