"""The engine's reader of protocol buffers."""

from headgate_engine.envoy.wire_format cimport WireCursor, WireField, cursor_of, is_utf8, next_field


def wire_fields(bytes message not None):
    cdef WireCursor cursor = cursor_of(message, len(message))
    cdef WireField field
    cdef int found
    fields = []
    while True:
        found = next_field(&cursor, &field)
        if found <= 0:
            return fields if found == 0 else None
        fields.append((field.number, field.kind, field.value, field.data[:field.size] if field.data != NULL else b""))


def utf8(bytes text not None):
    return is_utf8(text, len(text))
