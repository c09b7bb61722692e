"""The private channel."""

from __future__ import annotations

import os

import pytest

from headgate.server import control


def test_messages_and_descriptors_arrive_together() -> None:
    ours, theirs = control.channel_pair()
    read, write = os.pipe()
    control.send(ours, control.Prepare(3, ("bind/1",), b"k", (1, b"t")), [write])
    packet = control.receive(theirs)
    assert packet is not None
    message, descriptors = packet
    assert message == control.Prepare(3, ("bind/1",), b"k", (1, b"t"))
    os.write(descriptors[0], b"x")
    assert os.read(read, 1) == b"x"
    with pytest.raises(BlockingIOError):
        control.receive(theirs)
    ours.close()
    assert control.receive(theirs) is None


def test_an_oversized_message_is_refused() -> None:
    ours, _theirs = control.channel_pair()
    with pytest.raises(ValueError):
        control.send(ours, control.SetLevels(1, "x" * control.MAX_PACKET, "text"))
