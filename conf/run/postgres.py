"""A private PostgreSQL: its own folder, port, socket and password.

Root may not run it, so root starts it as the user `postgres`; that user cannot
enter root's home, hence the data lives in a fresh /var/tmp/sluice-*, linked
from the run folder.
"""
import copy
import glob
import os
import pwd
import secrets
import shutil
import signal
import subprocess
import tempfile

from run import keys
from run.process import Failed, Process, free_port

USER = "sluice"


def binary(name):
    """Debian keeps the server's programs out of PATH."""
    found = sorted(glob.glob(f"/usr/lib/postgresql/*/bin/{name}"))
    path = found[-1] if found else shutil.which(name)
    if not path:
        raise Failed(f"PostgreSQL's {name} is missing: run conf/packages run")
    return path


class Postgres:
    def __init__(self, folder, max_connections=100):
        self.folder = folder
        self.user = "postgres" if os.getuid() == 0 else None
        self.port = free_port()
        self.password = secrets.token_hex(16)
        self.max_connections = max_connections
        self.database, self.is_ours = "sluice", True
        self.home = None
        self.process = None

    def with_database(self, name):
        """The same server, which somebody else ends, with a database of our own."""
        other = copy.copy(self)
        other.database, other.is_ours = name, False
        return other

    @property
    def url(self):
        return f"postgresql://{USER}:{self.password}@127.0.0.1:{self.port}/{self.database}"

    def _run(self, *argv, **more):
        identity = {"user": self.user, "group": self.user, "extra_groups": []} if self.user else {}
        done = subprocess.run(argv, cwd=self.home, stdout=subprocess.PIPE, text=True,
                              stderr=subprocess.STDOUT, **identity, **more)
        if done.returncode != 0:
            raise Failed(f"{os.path.basename(argv[0])} failed:\n{done.stdout}")

    def create(self):
        """Lays the files; the superuser is `sluice` too, known by its password."""
        if not self.is_ours:
            return self
        self.home = tempfile.mkdtemp(prefix="sluice-", dir="/var/tmp")
        link = os.path.join(self.folder, "postgres")
        if os.path.islink(link):
            os.unlink(link)
        os.symlink(self.home, link)
        password = keys.write_secret(os.path.join(self.home, "password"), self.password)
        if self.user:
            owner = pwd.getpwnam(self.user)
            for path in (self.home, password):
                os.chown(path, owner.pw_uid, owner.pw_gid)
        self._run(binary("initdb"), "-D", f"{self.home}/data", "-U", USER,
                  "-A", "scram-sha-256", f"--pwfile={password}", "-E", "UTF8",
                  "--locale=C", "--no-sync", "--no-instructions")
        with open(f"{self.home}/data/postgresql.auto.conf", "a") as conf:
            conf.write(f"listen_addresses = '127.0.0.1'\nport = {self.port}\n"
                       f"unix_socket_directories = '{self.home}'\n"
                       f"max_connections = {self.max_connections}\n"
                       "shared_buffers = '128MB'\nlog_lock_waits = on\n")
        self.process = Process("postgres", [binary("postgres"), "-D", f"{self.home}/data"],
                               os.path.join(self.folder, "postgres.log"), user=self.user,
                               cwd=self.home, end_signal=signal.SIGINT)
        return self

    def _answers(self):
        return self.psql("select 1", "postgres").returncode == 0

    def psql(self, sql, database=None):
        return subprocess.run(
            [binary("psql"), "-X", "-At", "-v", "ON_ERROR_STOP=1", "-c", sql,
             f"host=127.0.0.1 port={self.port} user={USER} dbname={database or self.database}"],
            stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, cwd="/",
            env={**os.environ, "PGPASSWORD": self.password, "PGCONNECT_TIMEOUT": "30"})

    def start(self):
        if self.is_ours:
            self.process.start()
            self.process.wait_ready(self._answers, 30)
        exists = self.psql(f"select 1 from pg_database where datname = '{self.database}'",
                           "postgres")
        if exists.stdout.strip() != "1":
            made = self.psql(f"create database {self.database}", "postgres")
            if made.returncode != 0:
                raise Failed(made.stdout)

    def remove(self):
        """Ends the server at once, without a last checkpoint, since its files go."""
        if not self.is_ours:
            return
        if self.process:
            self.process.end(signal.SIGQUIT)
        if self.home:
            shutil.rmtree(self.home, ignore_errors=True)
            link = os.path.join(self.folder, "postgres")
            if os.path.islink(link):
                os.unlink(link)
            self.home = None
