"""A private PostgreSQL: its own folder, port, socket and password.

Root may not run it, so root starts it as the user `postgres`; that user cannot
enter root's home, hence the data lives in a fresh /var/tmp/sluice-*, linked
from the run folder. A second server may follow the first one's writing and take
its place (`Standby`).
"""
import copy
import glob
import os
import pwd
import shutil
import signal
import subprocess
import tempfile

from run import keys, pattern
from run.process import PATIENCE, Failed, Process, free_port, wait_until

USER = "sluice"
# What we advise for any server of an origin.
SETTINGS = os.path.join(os.path.dirname(os.path.dirname(os.path.abspath(__file__))),
                        "postgresql.conf")


def binary(name):
    """Debian keeps the server's programs out of PATH."""
    found = sorted(glob.glob(f"/usr/lib/postgresql/*/bin/{name}"))
    path = found[-1] if found else shutil.which(name)
    if not path:
        raise Failed(f"PostgreSQL's {name} is missing: run conf/packages run")
    return path


class Postgres:
    name = "postgres"

    def __init__(self, folder, max_connections=100):
        self.folder = folder
        self.user = "postgres" if os.getuid() == 0 else None
        self.port = free_port()
        self.password = pattern.password()
        self.max_connections = max_connections
        self.database, self.is_ours = "sluice", True
        # A database whose schema those get that are lent one of their own.
        self.pattern, self.has_schema = None, False
        self.home = None
        self.process = None

    def with_database(self, name, has_schema=True):
        """The same server, which somebody else ends, with a database of our own; with the
        schema in it where the server has one to copy."""
        other = copy.copy(self)
        other.database, other.is_ours = name, False
        other.has_schema = has_schema and self.pattern is not None
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

    @property
    def link(self):
        return os.path.join(self.folder, self.name)

    def _make_home(self):
        """The folder, and in it the password."""
        self.home = tempfile.mkdtemp(prefix="sluice-", dir="/var/tmp")
        if os.path.islink(self.link):
            os.unlink(self.link)
        os.symlink(self.home, self.link)
        self._give(self.home)
        self._give(keys.write_secret(os.path.join(self.home, "password"), self.password))

    def _give(self, path):
        """To whom the server runs as."""
        if self.user:
            owner = pwd.getpwnam(self.user)
            os.chown(path, owner.pw_uid, owner.pw_gid)

    def _lay_settings(self, *more):
        with open(f"{self.home}/data/postgresql.auto.conf", "a") as conf:
            conf.write("\n".join([
                "listen_addresses = '127.0.0.1'", f"port = {self.port}",
                f"unix_socket_directories = '{self.home}'",
                f"max_connections = {self.max_connections}", "shared_buffers = '128MB'",
                *more]) + "\n")
            with open(SETTINGS) as shipped:
                conf.write(shipped.read())
        self.process = Process(self.name, [binary("postgres"), "-D", f"{self.home}/data"],
                               f"{self.link}.log", user=self.user,
                               cwd=self.home, end_signal=signal.SIGINT)

    def create(self):
        """Lays the files; the superuser is `sluice` too, known by its password."""
        if not self.is_ours:
            return self
        self._make_home()
        pattern.fill(f"{self.home}/data", "postgres", self._init_data)
        self._lay_settings()
        return self

    def _init_data(self, folder):
        os.mkdir(folder, 0o700)
        self._give(folder)
        self._run(binary("initdb"), "-D", folder, "-U", USER,
                  "-A", "scram-sha-256", f"--pwfile={self.home}/password", "-E", "UTF8",
                  "--locale=C", "--no-sync", "--no-instructions")

    def _answers(self):
        return self.psql("select 1", "postgres").returncode == 0

    def psql(self, sql, database=None):
        return subprocess.run(
            [binary("psql"), "-X", "-At", "-v", "ON_ERROR_STOP=1", "-c", sql,
             f"host=127.0.0.1 port={self.port} user={USER} dbname={database or self.database}"],
            stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, cwd="/",
            env={**os.environ, "PGPASSWORD": self.password, "PGCONNECT_TIMEOUT": "30"})

    def tell(self, *statements):
        """Each by itself, as some demand; returns what the last one said."""
        for sql in statements:
            done = self.psql(sql, "postgres")
            if done.returncode != 0:
                raise Failed(f"{self.name}: {sql}: {done.stdout}")
        return done.stdout.strip()

    def start(self):
        if self.is_ours:
            self.process.start()
            self.process.wait_ready(self._answers, 30)
            made = self.psql("create extension if not exists pg_stat_statements", "template1")
            if made.returncode != 0:
                raise Failed(made.stdout)
        if not self.is_ours:
            # its files are copied, with what sessions else find out first about a new one
            schema = f" template {self.pattern}" if self.has_schema else ""
            self.tell(f"create database {self.database}{schema} strategy file_copy")
        elif not self.tell(f"select 1 from pg_database where datname = '{self.database}'"):
            self.tell(f"create database {self.database}")

    def keep_pattern(self):
        """Of our database as it is, while nobody is connected to it. What is lent for a moment
        nobody vacuums, with hundreds of databases that goes on all the time, and nobody
        expects back after a fall of the machine."""
        self.tell(f"create database pattern template {self.database}",
                  "alter system set autovacuum = off", "alter system set fsync = off",
                  "select pg_reload_conf()")
        self.pattern = "pattern"

    def remove(self):
        """Ends the server at once, without a last checkpoint, since its files go."""
        if not self.is_ours:
            return
        if self.process:
            self.process.end(signal.SIGQUIT)
        if self.home:
            shutil.rmtree(self.home, ignore_errors=True)
            if os.path.islink(self.link):
                os.unlink(self.link)
            self.home = None

    # -- stopped as a whole ---------------------------------------------------

    def _signal_all(self, sign):
        """The server and each of its sessions: they are processes of their own."""
        pid = self.process.pid
        with open(f"/proc/{pid}/task/{pid}/children") as children:
            for each in (pid, *map(int, children.read().split())):
                try:
                    os.kill(each, sign)
                except ProcessLookupError:
                    pass  # a session that ended meanwhile

    def pause(self):
        self._signal_all(signal.SIGSTOP)

    def resume(self):
        self._signal_all(signal.SIGCONT)

    # -- two servers ----------------------------------------------------------

    def wait_for(self, standby):
        """From now on no commit is answered before the standby has it on disk, too;
        None: commits wait for this server alone."""
        names = f"FIRST 1 ({standby.name})" if standby else ""
        self.tell(f"alter system set synchronous_standby_names = '{names}'",
                  "select pg_reload_conf()")
        wait_until(lambda: not standby or self.tell(
            "select sync_state from pg_stat_replication "
            f"where application_name = '{standby.name}' and state = 'streaming'") == "sync",
            30, "the standby synchronous")


class Standby(Postgres):
    """A copy that follows its primary's writing over the network, until `promote`."""
    name = "standby"

    def __init__(self, primary):
        super().__init__(primary.folder, primary.max_connections)
        self.primary, self.password = primary, primary.password
        self.database = primary.database

    @property
    def urls(self):
        """Of both: whoever wants to write finds the one that lets him."""
        ports = f"127.0.0.1:{self.primary.port},127.0.0.1:{self.port}"
        return f"postgresql://{USER}:{self.password}@{ports}/{self.database}"

    def create(self):
        """Copies the primary, which runs."""
        self._make_home()
        primary = f"host=127.0.0.1 port={self.primary.port} user={USER} application_name={self.name}"
        self._run(binary("pg_basebackup"), "-D", f"{self.home}/data", "-R", "-X", "stream",
                  "-c", "fast", "--no-sync", "-d", primary,
                  env={**os.environ, "PGPASSWORD": self.password})
        # The primary's own settings came along; what is added last counts.
        self._lay_settings("synchronous_standby_names = ''")
        return self

    def start(self):
        self.process.start()
        self.process.wait_ready(self._answers, 30)

    def follow_no_more(self):
        """Takes nothing further from the primary, as if the network between them were cut."""
        self.tell("alter system set primary_conninfo = ''", "select pg_reload_conf()")
        wait_until(lambda: self.primary.tell("select count(*) from pg_stat_replication") == "0",
                   30, "the primary without a standby")

    def promote(self):
        """Becomes a primary on a timeline of its own; returns when it writes."""
        if self.tell(f"select pg_promote(true, {int(30 * PATIENCE)})") != "t":
            raise Failed(f"the standby was not promoted:\n{self.process.log_tail()}")
