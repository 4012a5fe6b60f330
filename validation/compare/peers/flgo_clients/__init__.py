"""A benchmark of FLGo: the dealt clients of the work on the command line."""


def visualize(*_):
    """No picture of the partition."""
