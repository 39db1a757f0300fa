#!/usr/bin/python3
"""A TCP proxy that spoils connections on purpose.

    tests/proxy/proxy.py HOST:PORT            listens on a free port, prints it

Commands come on standard input, one a line, each answered by one line of JSON:
    delay MS [up|down]     every piece arrives MS later; order is kept
    drip BYTES_PER_S [up|down]
    stall [up|down]        nothing moves; what was read before is kept
    kept TEXT [up|down]    {"kept": whether TEXT is in what came since the stall}
    cut BYTES [up|down]    the connection is reset once so many more bytes went by
    refuse                 new connections are reset at once
    drop                   resets all present connections
    clear                  forwards freely again
    stats                  {"open","total","up","down","cut"}
`up` is from client to server; with neither named a command means both. Modes
apply to present connections and to those that come.
"""
import asyncio
import json
import socket
import struct
import subprocess
import sys
import threading

PIECE = 65536
SIDES = ("up", "down")


class Mode:
    """What happens to one direction of all connections."""

    def __init__(self):
        self.delay_ms, self.bytes_per_s, self.cut_after = 0, None, None
        self.kept = bytearray()
        self.free = asyncio.Event()
        self.free.set()


class Server:
    def __init__(self, host, port):
        self.host, self.port = host, port
        self.modes = {side: Mode() for side in SIDES}
        self.refusing = False
        self.connections = {}
        self.counts = {"total": 0, "up": 0, "down": 0, "cut": 0}

    async def on_connection(self, reader, writer):
        self.counts["total"] += 1
        number = self.counts["total"]
        if self.refusing:
            return reset(writer)
        try:
            far_reader, far_writer = await asyncio.open_connection(self.host, self.port)
        except OSError:
            return reset(writer)
        for each in (writer, far_writer):
            each.get_extra_info("socket").setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        self.connections[number] = (writer, far_writer)
        try:
            await asyncio.gather(self.pump("up", reader, far_writer, number),
                                 self.pump("down", far_reader, writer, number))
        finally:
            self.connections.pop(number, None)
            for each in (writer, far_writer):
                each.close()

    async def pump(self, side, reader, writer, number):
        pieces = asyncio.Queue(64)
        now = asyncio.get_running_loop().time

        async def deliver():
            while True:
                due, piece = await pieces.get()
                if not piece:
                    break
                await asyncio.sleep(max(0, due - now()))
                await self.forward(side, piece, writer, number)
            if writer.can_write_eof():
                writer.write_eof()

        delivery = asyncio.ensure_future(deliver())
        try:
            while True:
                piece = await reader.read(PIECE)
                if not self.modes[side].free.is_set():
                    self.modes[side].kept += piece
                await pieces.put((now() + self.modes[side].delay_ms / 1000, piece))
                if not piece:
                    break
            await delivery
        except OSError:
            self.cut(number)
        finally:
            delivery.cancel()

    async def forward(self, side, piece, writer, number):
        mode = self.modes[side]
        while piece:
            await mode.free.wait()
            size = len(piece) if mode.bytes_per_s is None else max(1, mode.bytes_per_s // 20)
            if mode.cut_after is not None:
                size = min(size, mode.cut_after)
                mode.cut_after -= min(size, len(piece))
            part, piece = piece[:size], piece[size:]
            writer.write(part)
            self.counts[side] += len(part)
            await writer.drain()
            if mode.cut_after == 0:
                mode.cut_after = None
                self.counts["cut"] += 1
                self.cut(number)
                raise ConnectionResetError
            if mode.bytes_per_s is not None:
                await asyncio.sleep(len(part) / mode.bytes_per_s)

    def cut(self, number):
        for writer in self.connections.get(number, ()):
            reset(writer)

    def obey(self, line):
        verb, *words = line.split()
        sides = [word for word in words if word in SIDES] or SIDES
        numbers = [int(word) for word in words if word.isdigit()]
        for mode in (self.modes[side] for side in sides):
            if verb == "delay":
                mode.delay_ms = numbers[0]
            elif verb == "drip":
                mode.bytes_per_s = numbers[0]
            elif verb == "cut":
                mode.cut_after = numbers[0]
            elif verb == "stall":
                mode.kept.clear()
                mode.free.clear()
            elif verb == "clear":
                mode.delay_ms, mode.bytes_per_s, mode.cut_after = 0, None, None
                mode.free.set()
        if verb == "kept":
            return {"kept": any(words[0].encode() in mode.kept for mode in map(self.modes.get, sides))}
        if verb in ("refuse", "clear"):
            self.refusing = verb == "refuse"
        if verb == "drop":
            for number in list(self.connections):
                self.cut(number)
        return {"open": len(self.connections), **self.counts}


def reset(writer):
    """Ends a connection with RST, so that nothing looks orderly."""
    sock = writer.get_extra_info("socket")
    if sock is not None and sock.fileno() >= 0:
        sock.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
    writer.transport.abort()


async def main(target):
    host, _, port = target.rpartition(":")
    proxy = Server(host, int(port))
    server = await asyncio.start_server(proxy.on_connection, "127.0.0.1", 0)
    print(server.sockets[0].getsockname()[1], flush=True)
    ended = asyncio.Event()
    loop = asyncio.get_running_loop()

    def read_commands():
        for line in sys.stdin:
            if line.strip():
                answer = asyncio.run_coroutine_threadsafe(run(line), loop).result()
                print(json.dumps(answer), flush=True)
        loop.call_soon_threadsafe(ended.set)

    async def run(line):
        return proxy.obey(line)

    threading.Thread(target=read_commands, daemon=True).start()
    await ended.wait()
    server.close()
    for number in list(proxy.connections):
        proxy.cut(number)


class Proxy:
    """The proxy as a child of a test: `proxy("stall", "down")`."""

    def __init__(self, target):
        self.child = subprocess.Popen([sys.executable, __file__, target], text=True,
                                      stdin=subprocess.PIPE, stdout=subprocess.PIPE)
        self.port = int(self.child.stdout.readline())
        self.address = f"127.0.0.1:{self.port}"

    def __call__(self, *words):
        self.child.stdin.write(" ".join(str(word) for word in words) + "\n")
        self.child.stdin.flush()
        return json.loads(self.child.stdout.readline())

    def close(self):
        self.child.stdin.close()
        self.child.wait(10)


if __name__ == "__main__":
    asyncio.run(main(sys.argv[1]))
