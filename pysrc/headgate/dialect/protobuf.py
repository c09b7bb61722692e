"""Protocol Buffers messages that are declared in Python.

Generated code would tie the gateway to one release of the protobuf library. This module takes 4 MB, so it is imported
only by the modules of protocols that need it.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Final, NamedTuple

from google.protobuf import descriptor_pool, message_factory, struct_pb2
from google.protobuf.descriptor_pb2 import DescriptorProto, FieldDescriptorProto, FileDescriptorProto

STRUCT: Final = ".google.protobuf.Struct"
IMPORTS: Final = {STRUCT: struct_pb2.DESCRIPTOR.name}
SCALARS: Final = {
    "string": FieldDescriptorProto.TYPE_STRING,
    "bytes": FieldDescriptorProto.TYPE_BYTES,
    "bool": FieldDescriptorProto.TYPE_BOOL,
    "int32": FieldDescriptorProto.TYPE_INT32,
    "uint32": FieldDescriptorProto.TYPE_UINT32,
    "int64": FieldDescriptorProto.TYPE_INT64,
    "uint64": FieldDescriptorProto.TYPE_UINT64,
    "sint32": FieldDescriptorProto.TYPE_SINT32,
    "sint64": FieldDescriptorProto.TYPE_SINT64,
    "fixed64": FieldDescriptorProto.TYPE_FIXED64,
    "double": FieldDescriptorProto.TYPE_DOUBLE,
}


class MessageField(NamedTuple):
    """One field of a message.

    `kind` is a scalar type, a message or enum of the same package, or STRUCT. `of` is `repeated`, `optional`, the name
    of the oneof that the field belongs to, or "".
    """

    number: int
    name: str
    kind: str
    of: str = ""


Enums = Mapping[str, Sequence[str]]


def file_of(
    name: str, package: str, messages: Mapping[str, Sequence[MessageField]], enums: Enums
) -> FileDescriptorProto:
    """Return the descriptor of a proto3 file. `enums` maps `Message.Enum` to its values, numbered from 0."""
    found = FileDescriptorProto(name=name, package=package, syntax="proto3")
    for title, fields in messages.items():
        message = found.message_type.add(name=title)
        for full, values in enums.items():
            owner, _, own = full.rpartition(".")
            if owner == title:
                enum = message.enum_type.add(name=own)
                for number, value in enumerate(values):
                    enum.value.add(name=value, number=number)
        for field in fields:
            _add(message, field, package, enums)
            if field.kind in IMPORTS and IMPORTS[field.kind] not in found.dependency:
                found.dependency.append(IMPORTS[field.kind])
        # Each `optional` field gets a synthetic oneof of its own. These must come after the declared oneofs
        # (https://github.com/protocolbuffers/protobuf/blob/main/docs/implementing_proto3_presence.md).
        for one in message.field:
            if one.proto3_optional:
                one.oneof_index = len(message.oneof_decl)
                message.oneof_decl.add(name=f"_{one.name}")
    return found


def _add(message: DescriptorProto, field: MessageField, package: str, enums: Enums) -> None:
    one = message.field.add(name=field.name, number=field.number, label=FieldDescriptorProto.LABEL_OPTIONAL)
    if field.kind in SCALARS:
        one.type = SCALARS[field.kind]
    else:
        one.type = FieldDescriptorProto.TYPE_ENUM if field.kind in enums else FieldDescriptorProto.TYPE_MESSAGE
        one.type_name = field.kind if field.kind.startswith(".") else f".{package}.{field.kind}"
    if field.of == "repeated":
        one.label = FieldDescriptorProto.LABEL_REPEATED
    elif field.of == "optional":
        one.proto3_optional = True
    elif field.of:
        names = [decl.name for decl in message.oneof_decl]
        if field.of not in names:
            message.oneof_decl.add(name=field.of)
            names.append(field.of)
        one.oneof_index = names.index(field.of)


def classes_of(described: FileDescriptorProto) -> dict[str, Any]:
    """Return the message classes of a file by name, and register the file in the default descriptor pool."""
    pool = descriptor_pool.Default()
    pool.AddSerializedFile(described.SerializeToString())
    found = pool.FindFileByName(described.name)
    return {name: message_factory.GetMessageClass(one) for name, one in found.message_types_by_name.items()}


def fill_struct(struct: Any, values: Mapping[str, Any]) -> None:
    """Add plain values (None, bool, numbers, text, lists, maps with text keys) to a google.protobuf.Struct."""
    for key, value in values.items():
        _fill(struct.fields[_text(key)], value)


def _text(value: str) -> str:
    # JSON allows unpaired surrogates, which cannot be encoded in UTF-8.
    return value.encode("utf-8", "replace").decode()


def _fill(slot: Any, value: Any) -> None:
    if value is None:
        slot.null_value = struct_pb2.NULL_VALUE
    elif isinstance(value, bool):
        slot.bool_value = value
    elif isinstance(value, int | float):
        slot.number_value = value
    elif isinstance(value, str):
        slot.string_value = _text(value)
    elif isinstance(value, Mapping):
        slot.struct_value.SetInParent()
        fill_struct(slot.struct_value, value)
    else:
        slot.list_value.SetInParent()
        for one in value:
            _fill(slot.list_value.values.add(), one)


def struct_values(struct: Any) -> dict[str, Any]:
    """Return the fields of a google.protobuf.Struct as plain values. Numbers are floats."""
    return {key: _value(slot) for key, slot in struct.fields.items()}


def _value(slot: Any) -> Any:
    match slot.WhichOneof("kind"):
        case "struct_value":
            return struct_values(slot.struct_value)
        case "list_value":
            return [_value(one) for one in slot.list_value.values]
        case "bool_value" | "number_value" | "string_value" as kind:
            return getattr(slot, kind)
    return None
