"""The proxy does to connections what it says."""
import socket
import threading
import time

import pytest

from proxy import Proxy


@pytest.fixture
def echo():
    """An address that sends back what it gets."""
    listener = socket.create_server(("127.0.0.1", 0))

    def serve_one(connection):
        with connection:
            try:
                while data := connection.recv(65536):
                    connection.sendall(data)
            except OSError:
                pass

    def serve():
        while True:
            try:
                connection, _ = listener.accept()
            except OSError:
                return
            threading.Thread(target=serve_one, args=(connection,), daemon=True).start()

    threading.Thread(target=serve, daemon=True).start()
    yield "127.0.0.1:%d" % listener.getsockname()[1]
    listener.close()


@pytest.fixture
def proxy(echo):
    proxy = Proxy(echo)
    yield proxy
    proxy.close()


@pytest.fixture
def client(proxy):
    with socket.create_connection(("127.0.0.1", proxy.port), 5) as client:
        assert exchange(client, b"hello") == b"hello"
        yield client


def exchange(client, data):
    client.sendall(data)
    got = b""
    while len(got) < len(data):
        piece = client.recv(65536)
        if not piece:
            break
        got += piece
    return got


def test_forwards_large_data_unchanged(client):
    data = bytes(range(256)) * 8000
    threading.Thread(target=client.sendall, args=(data,), daemon=True).start()
    got = b""
    while len(got) < len(data):
        got += client.recv(65536)
    assert got == data


def test_delay_holds_each_piece_back(proxy, client):
    proxy("delay", 150)
    began = time.monotonic()
    assert exchange(client, b"late") == b"late"
    assert time.monotonic() - began >= 0.3


def test_drip_slows_one_direction(proxy, client):
    proxy("drip", 1000, "down")
    began = time.monotonic()
    assert exchange(client, b"x" * 300) == b"x" * 300
    assert time.monotonic() - began >= 0.25


def test_stall_keeps_data_until_cleared(proxy, client):
    proxy("stall", "down")
    client.sendall(b"wait")
    client.settimeout(0.2)
    with pytest.raises(TimeoutError):
        client.recv(10)
    client.settimeout(5)
    proxy("clear")
    assert client.recv(10) == b"wait"


def test_cut_resets_after_so_many_bytes(proxy, client):
    proxy("cut", 3, "down")
    client.sendall(b"abcdef")
    got = b""
    with pytest.raises(ConnectionResetError):
        while True:
            piece = client.recv(10)
            got += piece
    assert len(got) <= 3 and proxy("stats")["cut"] == 1


def test_drop_resets_what_is_open(proxy, client):
    proxy("drop")
    with pytest.raises(ConnectionResetError):
        client.recv(10)


def test_refuse_resets_newcomers_until_cleared(proxy):
    proxy("refuse")
    with pytest.raises(ConnectionResetError):  # while connecting, or at the first read
        with socket.create_connection(("127.0.0.1", proxy.port), 5) as refused:
            assert refused.recv(10) != b"", "closed in order, not reset"
    proxy("clear")
    with socket.create_connection(("127.0.0.1", proxy.port), 5) as client:
        assert exchange(client, b"again") == b"again"


def test_drop_resets_connections_that_came_in_the_same_moment(proxy):
    clients = [socket.create_connection(("127.0.0.1", proxy.port), 5) for _ in range(8)]
    for client in clients:
        assert exchange(client, b"here") == b"here"
    assert proxy("drop")["open"] == 8
    for client in clients:
        with client, pytest.raises(ConnectionResetError):
            client.recv(1)


def test_what_is_kept_can_be_looked_at(proxy, client):
    proxy("stall", "up")
    client.sendall(b"a word that waits")
    deadline = time.monotonic() + 10
    while not proxy("kept", "word", "up")["kept"]:
        assert time.monotonic() < deadline
    assert not proxy("kept", "word", "down")["kept"] and not proxy("kept", "other")["kept"]
