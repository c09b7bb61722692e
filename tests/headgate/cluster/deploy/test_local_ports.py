"""A gateway of this machine has the usual ports, or others where a program listens at all addresses."""

from __future__ import annotations

import json
import logging
import socket
from pathlib import Path

import pytest

from headgate.cluster.deploy.local_ports import FILE, USUAL, can_bind, own_ports

ADDRESS = "127.66.5.4"


def test_a_port_that_is_taken_is_replaced_and_the_choice_is_kept(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.WARNING)
    with socket.create_server((ADDRESS, USUAL["STATS_ADDR"])):
        chosen = own_ports(tmp_path, ADDRESS, look=False)
        assert chosen["STATS_ADDR"] != USUAL["STATS_ADDR"]
        assert {**chosen, "STATS_ADDR": USUAL["STATS_ADDR"]} == USUAL
    [record] = caplog.records
    assert vars(record)["stats_addr"] == f"{ADDRESS}:{chosen['STATS_ADDR']}"
    assert (tmp_path / FILE).stat().st_mode & 0o777 == 0o600
    # The gateway itself listens there now: its ports are not looked at.
    with socket.create_server((ADDRESS, chosen["STATS_ADDR"])):
        assert own_ports(tmp_path, ADDRESS, look=False) == chosen
        assert own_ports(tmp_path, ADDRESS, look=True)["STATS_ADDR"] != chosen["STATS_ADDR"]


def test_a_gateway_that_runs_without_a_known_choice_keeps_the_usual_ports(tmp_path: Path) -> None:
    with socket.create_server((ADDRESS, USUAL["STATS_ADDR"])):
        assert own_ports(tmp_path, ADDRESS, look=False, started=True) == USUAL
    assert not (tmp_path / FILE).exists()


@pytest.mark.parametrize("text", ["", "[]", "{", "5"])
def test_a_file_without_ports_is_written_anew(tmp_path: Path, text: str) -> None:
    (tmp_path / FILE).write_text(text)
    assert own_ports(tmp_path, ADDRESS, look=False) == USUAL
    assert json.loads((tmp_path / FILE).read_text()) == USUAL


def test_connections_that_have_ended_do_not_take_a_port() -> None:
    server = socket.create_server((ADDRESS, 0))
    port = server.getsockname()[1]
    assert not can_bind(ADDRESS, port)
    client = socket.create_connection((ADDRESS, port))
    taken, _ = server.accept()
    # The side that closes first has to remember the connection for a while.
    taken.close()
    client.close()
    server.close()
    assert can_bind(ADDRESS, port)
