"""What goes over the wire: fragments as resources of Envoy's aggregated discovery service, delta variant.

The protocol: https://www.envoyproxy.io/docs/envoy/latest/api-docs/xds_protocol. The payload of a resource is the
message

    message Fragment { string place = 1; string parent = 2; string order = 3; string value = 4; }

whose last two fields are JSON. `google.protobuf.Struct` would say the same in more bytes and many times the time.
"""

from __future__ import annotations

import hashlib
from typing import Any, Final, NamedTuple

import orjson
from google.protobuf import descriptor_pb2, descriptor_pool, message_factory
from google.protobuf.message import DecodeError

from headgate.cluster.translate.fragments import Fragment
from headgate.config.delivered import DeliveredPart, written

SERVICE: Final = "envoy.service.discovery.v3.AggregatedDiscoveryService"
DELTA_METHOD: Final = "DeltaAggregatedResources"
WHOLE_METHOD: Final = "StreamAggregatedResources"
TYPE_URL: Final = "type.googleapis.com/headgate.dev.Fragment"
# A message may have this many bytes, as with other clients of this protocol.
MAX_MESSAGE: Final = 200 * 1024 * 1024
_VERSION_BYTES: Final = 12


def _fragment_class() -> Any:
    name = "headgate.dev/fragment.proto"
    file = descriptor_pb2.FileDescriptorProto(name=name, package="headgate.dev", syntax="proto3")
    message = file.message_type.add(name="Fragment")
    for number, field in enumerate(("place", "parent", "order", "value"), 1):
        message.field.add(name=field, number=number, type="TYPE_STRING", label="LABEL_OPTIONAL")
    pool = descriptor_pool.DescriptorPool()
    pool.Add(file)
    return message_factory.GetMessageClass(pool.FindMessageTypeByName("headgate.dev.Fragment"))


_Fragment: Final = _fragment_class()


class SentFragment(NamedTuple):
    """A fragment as it is sent. `version` is a hash of `payload`, so that all replicas of a controller agree."""

    version: str
    payload: bytes


def resource_of(fragment: Fragment) -> SentFragment:
    """Return the resource of a fragment."""
    payload = _Fragment(
        place=fragment.place,
        parent=fragment.parent,
        order=orjson.dumps(fragment.order, default=list).decode(),
        value=orjson.dumps(fragment.value).decode(),
    ).SerializeToString()
    return SentFragment(version_of(payload), payload)


def version_of(payload: bytes) -> str:
    """Return the version of a payload."""
    return hashlib.blake2b(payload, digest_size=_VERSION_BYTES).hexdigest()


def part_of(payload: bytes) -> DeliveredPart:
    """Return the part of a configuration that a payload holds. Raises ValueError."""
    try:
        found = _Fragment.FromString(payload)
    except DecodeError as error:
        raise ValueError(f"not a fragment: {error}") from None
    value, order = orjson.loads(found.value), orjson.loads(found.order)
    if not found.place or not isinstance(value, dict) or not isinstance(order, list):
        raise ValueError("a fragment has a place, an order that is a list, and a value that is a map")
    return DeliveredPart(found.place, found.parent, tuple(map(_ordered, order)), written(found.value))


def _ordered(value: Any) -> tuple[int, Any]:
    """Return a value of an order so that any two can be compared."""
    if isinstance(value, list):
        return (2, tuple(map(_ordered, value)))
    return (1, value) if isinstance(value, str) else (0, value or 0)
