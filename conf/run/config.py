"""The configuration files of a stack, as nested dicts written as YAML."""
import hashlib
import json
import re

from run.process import PATIENCE


def patient(ms):
    """The default time to reach a neighbour, longer on a busy test machine."""
    return {} if PATIENCE == 1 else {"connect_timeout": f"{int(ms * PATIENCE)}ms"}


def scalar(value):
    if value is None:
        return "null"
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, (int, float)):
        return str(value)
    return json.dumps(value)


def yaml_lines(value, indent=""):
    for key, item in value.items():
        if isinstance(item, dict):
            yield f"{indent}{key}:"
            yield from yaml_lines(item, indent + "  ")
        elif isinstance(item, list):
            yield f"{indent}{key}: [{', '.join(scalar(x) for x in item)}]"
        else:
            yield f"{indent}{key}: {scalar(item)}"


def laid_over(base, more):
    """`base` with the values of `more` in their places; None takes a key out."""
    out = dict(base)
    for key, item in (more or {}).items():
        if item is None:
            out.pop(key, None)
        elif isinstance(item, dict) and isinstance(out.get(key), dict):
            out[key] = laid_over(out[key], item)
        else:
            out[key] = item
    return out


def write(path, base, more=None):
    with open(path, "w") as out:
        out.write("\n".join(yaml_lines(laid_over(base, more))) + "\n")


def gateway(stack, node):
    return {
        "listen": [f"127.0.0.1:{node.port}"],
        "hosts": ["127.0.0.1", "localhost"],
        "state_directory": node.state,
        "trusted_proxies": ["127.0.0.1/32"],
        "tls": {"certificate": stack.certificate, "key": stack.server_key},
        # One account may well repeat itself a hundred times at once here.
        "limiter": {"network_failures_per_minute": 50, "network_guest_joins_per_minute": 200,
                    "account_requests_per_s": 100, "account_burst": 1000},
        "accounts": {"keys": [stack.account_key]},
        "pass": {"keys": [stack.pass_key]},
        "tickets": {"keys": [stack.ticket_key]},
        "origin": {"address": address_of(stack.origin_url), "token_file": stack.service_token,
                   **patient(500)},
        "upstreams": {"shop": {"address": address_of(stack.origin_url), **patient(500)}},
        "admin": {"listen": [f"127.0.0.1:{node.admin_port}"],
                  "token_file": stack.operator_token},
    }


def origin(stack):
    return {
        "listen": [f"127.0.0.1:{stack.origin_port}"],
        "token_file": stack.service_token,
        "pass_jwks": stack.pass_jwks,
        "demo_page": True,
        # who is one of many guests of a server comes with few sessions
        "database": {"url": serving(stack.database_url or stack.postgres.url),
                     **({} if stack.postgres.is_ours else {"connections": 3}),
                     **patient(2000)},
    }


def origin_init(stack):
    """The origin's, with what only --init may know."""
    owner = stack.database_url or stack.postgres.url
    return {**origin(stack), **({"database": {"url": serving(owner), "init_url": owner}}
                                if serving(owner) != owner else {})}


def serving(owner):
    """The database's URL for the role that serves, which --init makes. Its password
    follows from the owner's, and does not tell it."""
    found = re.fullmatch(r"postgresql://(\w+):([^@]+)@(.*)", owner)
    if not found:
        return owner
    password = hashlib.sha256(f"serving {found[2]}".encode()).hexdigest()[:32]
    return f"postgresql://{found[1]}_service:{password}@{found[3]}"


def address_of(url):
    return url.partition("://")[2]
