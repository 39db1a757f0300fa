"""A private PgBouncer in transaction mode before a private PostgreSQL."""
import os
import pwd
import shutil
import tempfile

from run import config
from run.process import Process, free_port


class Bouncer:
    """`connections`: to the server, for each database; they are taken in turn, so what
    one transaction leaves in a session is met by somebody else's next."""

    def __init__(self, postgres, connections=3):
        self.postgres, self.port = postgres, free_port()
        self.home = tempfile.mkdtemp(prefix="sluice-", dir="/var/tmp")
        with open(f"{self.home}/users", "w") as users:
            for url in (postgres.url, config.serving(postgres.url)):
                user, _, password = url.partition("://")[2].partition("@")[0].partition(":")
                users.write(f'"{user}" "{password}"\n')
        with open(f"{self.home}/ini", "w") as ini:
            ini.write(f"[databases]\n* = host=127.0.0.1 port={postgres.port}\n"
                      f"[pgbouncer]\nlisten_addr = 127.0.0.1\nlisten_port = {self.port}\n"
                      "unix_socket_dir =\nauth_type = scram-sha-256\n"
                      f"auth_file = {self.home}/users\npool_mode = transaction\n"
                      f"default_pool_size = {connections}\nserver_round_robin = 1\n")
        if postgres.user:
            owner = pwd.getpwnam(postgres.user)
            for path in (self.home, f"{self.home}/users", f"{self.home}/ini"):
                os.chown(path, owner.pw_uid, owner.pw_gid)
        program = shutil.which("pgbouncer") or "/usr/sbin/pgbouncer"
        self.process = Process("pgbouncer", [program, f"{self.home}/ini"], f"{self.home}/log",
                               user=postgres.user, cwd=self.home)

    def url_of(self, url):
        """The same database by way of us."""
        return url.replace(f":{self.postgres.port}/", f":{self.port}/")

    def start(self):
        self.process.start()
        return self

    def stop(self):
        self.process.end()
        shutil.rmtree(self.home, ignore_errors=True)
