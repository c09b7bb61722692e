"""The private channel."""

from __future__ import annotations

import os

import pytest

from headgate.config.load import TextSource, load
from headgate.server import control


def test_messages_and_descriptors_arrive_together() -> None:
    ours, theirs = control.channel_pair()
    read, write = os.pipe()
    control.send(ours, control.Prepare(3, ("bind/1",), b"k"), [write])
    packet = control.receive(theirs)
    assert packet is not None
    message, descriptors = packet
    assert message == control.Prepare(3, ("bind/1",), b"k")
    os.write(descriptors[0], b"x")
    assert os.read(read, 1) == b"x"
    with pytest.raises(BlockingIOError):
        control.receive(theirs)
    ours.close()
    assert control.receive(theirs) is None


def test_a_configuration_with_secrets_crosses_and_several_can_read_it() -> None:
    text = """
gateways: {default: {port: 3000}}
routes: [{name: a, backends: [{host: "a.test:80", policies: {backendAuth: {key: hidden}}}]}]
"""
    gateway = load(TextSource(text)).gateway
    descriptor = control.store(gateway)
    copies = [control.load(os.dup(descriptor)) for _ in range(2)]
    os.close(descriptor)
    assert [copy.digest for copy in copies] == [gateway.digest] * 2
    auth = copies[0].binds[0].listeners[0].routes[0].backends[0].policies.auth
    assert auth is not None
    assert auth.fixed_header is not None
    assert auth.fixed_header.key.secret.reveal() == "hidden"


def test_an_oversized_message_is_refused() -> None:
    ours, _theirs = control.channel_pair()
    with pytest.raises(ValueError):
        control.send(ours, control.SetLevels(1, "x" * control.MAX_PACKET, "text"))
