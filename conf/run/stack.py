"""A whole sluice on this machine: PostgreSQL, perhaps with a standby, one origin, one
or more gateways.

Each stack has its own folder, keys and free ports, so several run side by side.
`state.json` in the folder says what was started, for a later process to end it.
"""
import json
import os
import shutil

from run import config, keys, pattern
from run.calls import Api
from run.postgres import Postgres, Standby
from run.process import Failed, Process, end, free_port, is_alive

ROOT = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
BUILD = os.path.join(ROOT, "build")


class Node:
    """One gateway: its ports, its state folder, its process."""

    def __init__(self, stack, number):
        self.name = f"gateway{number}"
        self.port, self.admin_port = free_port(), free_port()
        self.state = os.path.join(stack.folder, f"{self.name}.state")
        self.file = os.path.join(stack.folder, f"{self.name}.yaml")
        os.makedirs(self.state, mode=0o700, exist_ok=True)
        self.url = f"https://127.0.0.1:{self.port}"
        self.admin = Api(f"https://127.0.0.1:{self.admin_port}",
                         keys.read_token(stack.operator_token), stack.ca)
        self.process = Process(self.name, [stack.program("gateway/sluice"), "-c", self.file],
                               os.path.join(stack.folder, f"{self.name}.log"), env=stack.env)


class Stack:
    def __init__(self, folder, build=BUILD, nodes=1, env=None, options=None, postgres=None):
        """`options`: {"gateway": {...}, "origin": {...}} laid over the configuration;
        `postgres`: a server that runs already and that somebody else ends."""
        self.folder, self.build, self.env = os.path.abspath(folder), build, env
        self.options = options or {}
        os.makedirs(self.folder, mode=0o700, exist_ok=True)
        self._make_keys()
        self.postgres, self.standby = postgres or Postgres(self.folder), None
        self.origin_port = free_port()
        self.origin = Api(f"http://127.0.0.1:{self.origin_port}",
                          keys.read_token(self.service_token))
        self.origin_file = os.path.join(self.folder, "origin.yaml")
        self.init_file = os.path.join(self.folder, "origin-init.yaml")
        self.origin_process = Process(
            "origin", [self.program("origin/sluice-origin"), "-c", self.origin_file],
            os.path.join(self.folder, "origin.log"), env=env)
        # What nodes call the origin by; a test may lay a proxy of its own between.
        self.origin_url = self.origin.url
        self.database_url = None
        self.nodes = [Node(self, number) for number in range(nodes)]

    def _make_keys(self):
        folder = os.path.join(self.folder, "keys")
        pattern.fill(folder, "keys", keys.make_all)
        self.ca, self.certificate, self.server_key, self.account_key, self.pass_key, \
            self.pass_jwks, self.ticket_key, self.service_token, self.operator_token = (
                os.path.join(folder, name) for name in (
                    "ca.pem", "server.pem", "server.key", "account.jwk", "pass.key",
                    "pass.jwks", "ticket.key", "service.token", "operator.token"))

    def program(self, path):
        return os.path.join(self.build, path)

    # -- starting -------------------------------------------------------

    def start(self):
        self.start_postgres()
        self.start_origin()
        for node in self.nodes:
            self.start_gateway(node)
        return self

    def start_postgres(self):
        self.postgres.create()
        self._remember()
        self.postgres.start()
        self._remember()

    def start_standby(self, synchronous=True):
        """Beside the database, which runs: an origin started from now on knows both."""
        self.standby = Standby(self.postgres)
        self.standby.create()
        self._remember()
        self.standby.start()
        self._remember()
        self.database_url = self.standby.urls
        if synchronous:
            self.postgres.wait_for(self.standby)

    def promote_standby(self):
        """It is the database from now on, whatever became of the first."""
        self.standby.promote()
        self.postgres, self.standby = self.standby, self.postgres

    def write_origin_file(self):
        more = self.options.get("origin")
        config.write(self.origin_file, config.origin(self), more)
        config.write(self.init_file, config.origin_init(self), more)

    def write_gateway_file(self, node):
        config.write(node.file, config.gateway(self, node), self.options.get("gateway"))

    def init_database(self):
        init = Process("origin --init", [self.origin_process.argv[0], "-c", self.init_file, "--init"],
                       self.origin_process.log, env=self.env).start()
        if init.wait(60) != 0:
            raise Failed(f"sluice-origin --init failed:\n{init.log_tail()}")

    def start_lender(self):
        """Only the database: those that it lends one of their own get the schema, too."""
        self.start_postgres()
        self.write_origin_file()
        self.init_database()
        self.postgres.keep_pattern()

    def start_origin(self):
        self.write_origin_file()
        if not self.postgres.has_schema:
            self.init_database()
        self.restart_origin()

    def restart_origin(self, wait=True):
        self.origin_process.start()
        self._remember()
        if wait:
            self.origin_process.wait_ready(self.origin.is_ready, 30)

    def start_gateway(self, node=None, wait=True):
        node = node or self.nodes[0]
        self.write_gateway_file(node)
        node.process.start()
        self._remember()
        if wait:
            node.process.wait_ready(node.admin.is_ready, 30)

    # -- the first node, since most stacks have one ----------------------

    @property
    def gateway(self):
        return self.nodes[0].process

    @property
    def admin(self):
        return self.nodes[0].admin

    @property
    def url(self):
        return self.nodes[0].url

    def metrics(self):
        return self.admin.metrics()

    # -- what others are told --------------------------------------------

    def addresses(self):
        return {"gateway": self.nodes[0].url, "gateways": [n.url for n in self.nodes],
                "admin": self.nodes[0].admin.url, "admins": [n.admin.url for n in self.nodes],
                "origin": self.origin.url, "postgres": self.postgres.url, "redis": None,
                "ca": self.ca, "operator_token": self.operator_token,
                "service_token": self.service_token, "account_key": self.account_key,
                "pass_jwks": self.pass_jwks}

    def write_addresses(self):
        path = os.path.join(self.folder, "addresses.json")
        with open(path, "w") as out:
            json.dump(self.addresses(), out, indent=1)
            out.write("\n")
        os.chmod(path, 0o600)
        return path

    # -- ending ----------------------------------------------------------

    def processes(self):
        """In the order in which they are to end."""
        databases = [each.process for each in self._databases() if each.process]
        return [*(node.process for node in self.nodes), self.origin_process, *databases]

    def _databases(self):
        ours = [self.postgres] if self.postgres.is_ours else []
        return [*ours, *([self.standby] if self.standby else [])]

    def _remember(self):
        state = {"postgres_homes": [each.home for each in self._databases() if each.home],
                 "processes": [[p.name, p.pid, p.started, int(p.end_signal)]
                               for p in self.processes() if p.pid]}
        path = os.path.join(self.folder, "state.json")
        with open(path + ".new", "w") as out:
            json.dump(state, out)
        os.rename(path + ".new", path)

    def stop(self):
        for process in [*(node.process for node in self.nodes), self.origin_process]:
            process.end()
        for database in self._databases():
            database.remove()
        state = os.path.join(self.folder, "state.json")
        if os.path.exists(state):
            os.unlink(state)


def left_running(folder):
    """The rows [name, pid, started, signal that ends it] of what an earlier stack in `folder` left alive."""
    try:
        with open(os.path.join(folder, "state.json")) as file:
            state = json.load(file)
    except (OSError, ValueError):
        return []
    return [row for row in state["processes"] if is_alive(row[1], row[2])]


def end_earlier(folder):
    """Ends what an earlier stack left in `folder` and removes its database."""
    for _, pid, started, sign in left_running(folder):
        end(pid, started, sign)
    try:
        with open(os.path.join(folder, "state.json")) as file:
            homes = json.load(file)["postgres_homes"]
    except (OSError, ValueError, KeyError):
        homes = []
    for home in homes:
        if home.startswith("/var/tmp/sluice-"):
            shutil.rmtree(home, ignore_errors=True)
    shutil.rmtree(folder, ignore_errors=True)
