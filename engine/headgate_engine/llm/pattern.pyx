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

    cdef str meet(self, ModelPattern other):
        cdef ModelPattern longer = self
        cdef ModelPattern shorter = other
        if len(other.text) > len(self.text):
            longer, shorter = other, self
        if self.exact is not None or other.exact is not None:
            # A name, and what may be longer than the name: `gpt-5*` fits `gpt-5`.
            longer, shorter = (self, other) if self.exact is not None else (other, self)
            return longer.text if shorter.fits(longer.exact) else None
        if shorter.text == "*":
            return longer.text
        if self.prefix is not None and other.prefix is not None:
            return longer.text if longer.prefix.startswith(shorter.prefix) else None
        if self.suffix is not None and other.suffix is not None:
            return longer.text if longer.suffix.endswith(shorter.suffix) else None
        if self.prefix is not None:
            return self.text + other.text[1:]
        return other.text + self.text[1:]

    def matches(self, str model):
        """Whether the model's name fits."""
        return bool(self.fits(model.encode()))
