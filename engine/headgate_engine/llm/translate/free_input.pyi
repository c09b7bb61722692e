class FreeInput:
    """C face only: reads the arguments of one call piece by piece."""

def free_text(arguments: str) -> str:
    """Return the input of a custom tool that the arguments of a function's call stand for.

    It is their member `input`; what the model wrote in any other form is the input as it stands.
    """
