"""Patterns of model names: exact, `prefix*`, `*suffix`, `*`."""

from libc.string cimport memcmp


cdef class ModelPattern:
    """A name, or with one `*` at its start or end, or `*`; ValueError for anything else."""

    def __init__(self, str text):
        raw = text.encode()
        self.text = text
        if not raw:
            raise ValueError("a model has a name")
        if b"*" in raw.removeprefix(b"*").removesuffix(b"*") or (raw != b"*" and raw.count(b"*") > 1):
            raise ValueError(f"model pattern {text!r}: one * at the start or the end")
        if raw == b"*":
            return
        if raw.endswith(b"*"):
            self.prefix = raw.removesuffix(b"*")
        elif raw.startswith(b"*"):
            self.suffix = raw[1:]
        else:
            self.exact = raw

    cdef bint fits(self, bytes model) noexcept:
        if self.exact is not None:
            return model == self.exact
        if self.prefix is not None:
            return len(model) >= len(self.prefix) and memcmp(<char*>model, <char*>self.prefix, len(self.prefix)) == 0
        if self.suffix is not None:
            return len(model) >= len(self.suffix) and memcmp(
                <char*>model + len(model) - len(self.suffix), <char*>self.suffix, len(self.suffix)) == 0
        return True

    def matches(self, str model):
        """Whether the model's name fits."""
        return bool(self.fits(model.encode()))
