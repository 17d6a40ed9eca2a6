from ..workflow.paths import escaped


def names_step(name: str, path: str) -> bool:
    """Whether what a test calls a step is the step at a path: its path, or its own name wherever it stands.

    Example:
        >>> names_step("charge", "order 1/charge"), names_step("order 1/charge", "order 1/charge")
        (True, True)
    """
    return name == path or (name != "" and escaped(name) == path.rpartition("/")[2])
