"""A private Redis: its own folder, port and password, its data kept over a kill."""
import os
import secrets
import shutil
import socket

from run.process import Failed, Process, free_port


class Redis:
    def __init__(self, folder):
        self.folder = os.path.join(os.path.abspath(folder), "redis")
        self.port, self.password = free_port(), secrets.token_hex(16)
        program = shutil.which("redis-server")
        if not program:
            raise Failed("redis-server is missing: run conf/packages peers")
        os.makedirs(self.folder, mode=0o700, exist_ok=True)
        self.file = os.path.join(self.folder, "redis.conf")
        self.process = Process("redis", [program, self.file],
                               os.path.join(self.folder, "redis.log"), cwd=self.folder)

    @property
    def url(self):
        return f"redis://:{self.password}@127.0.0.1:{self.port}"

    def start(self):
        with open(self.file, "w") as conf:
            conf.write(f"bind 127.0.0.1\nport {self.port}\nrequirepass {self.password}\n"
                       f"dir {self.folder}\nappendonly yes\nappendfsync everysec\nsave \"\"\n"
                       "io-threads 1\n")
        os.chmod(self.file, 0o600)
        self.process.start()
        self.process.wait_ready(self.is_ready, 15)
        return self

    def is_ready(self):
        """Has read what it kept, and answers."""
        try:
            with socket.create_connection(("127.0.0.1", self.port), 2) as link:
                link.sendall(f"AUTH {self.password}\r\nPING\r\n".encode())
                said = b""
                while said.count(b"\r\n") < 2:
                    more = link.recv(100)
                    if not more:
                        return False
                    said += more
                return said == b"+OK\r\n+PONG\r\n"
        except OSError:
            return False

    def remove(self):
        self.process.end()
        shutil.rmtree(self.folder, ignore_errors=True)
