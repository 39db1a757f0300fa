"""Bad configurations and bad surroundings: clear words, exit codes, nothing started."""
import os
import re
import socket
import subprocess

import psycopg2
import pytest
import yaml

from run import config
from run.process import wait_until


@pytest.fixture
def stack(make_shop):
    """A stack whose files are written and of which nothing runs."""
    stack = make_shop(start=False).stack
    stack.database_url = "postgresql://nobody@127.0.0.1:1/none"
    stack.write_origin_file()
    stack.write_gateway_file(stack.nodes[0])
    return stack


def run(stack, program, file, *flags):
    return subprocess.run([stack.program(program), "-c", file, *flags], stdout=subprocess.PIPE,
                          stderr=subprocess.STDOUT, text=True, timeout=20)


def run_gateway(stack, more, *flags):
    config.write(stack.nodes[0].file, config.gateway(stack, stack.nodes[0]), more)
    return run(stack, "gateway/sluice", stack.nodes[0].file, *flags)


PROGRAMS = pytest.mark.parametrize("program, file", [
    ("gateway/sluice", "gateway0.yaml"), ("origin/sluice-origin", "origin.yaml")])


@PROGRAMS
def test_good_file_passes_the_check(stack, program, file):
    done = run(stack, program, os.path.join(stack.folder, file), "-t")
    assert done.returncode == 0, done


@PROGRAMS
def test_version_is_told(stack, program, file):
    done = subprocess.run([stack.program(program), "--version"], stdout=subprocess.PIPE, text=True)
    assert done.returncode == 0 and re.search(r"\d+\.\d+", done.stdout)


@PROGRAMS
def test_every_fault_is_told_in_one_run_with_line_and_field(stack, program, file):
    path = os.path.join(stack.folder, file)
    with open(path) as old:
        text = old.read()
    count = text.count("\n")
    with open(path, "a") as out:
        out.write("nonsense: 1\nlimits:\n  idle: 12\n  max_streams: 100000\n  header_bytes: lots\n")
    done = run(stack, program, path)
    assert done.returncode == 2, done
    lines = done.stdout.splitlines()
    for offset, word in ((1, "nonsense"), (3, "idle"), (4, "max_streams"), (5, "header_bytes")):
        assert any(f"{file}:{count + offset}:" in line and word in line for line in lines), (word, done)
    assert len(lines) <= 6


@PROGRAMS
@pytest.mark.parametrize("text", ["", "[", "a: [1", "- 1\n", "listen: &a [*a]\n", "\tx: 1\n", "a: 1\na: 2\n"])
def test_what_is_no_configuration_is_exit_2(stack, program, file, text):
    path = os.path.join(stack.folder, file)
    with open(path, "w") as out:
        out.write(text)
    done = run(stack, program, path, "-t")
    assert done.returncode == 2 and f"{file}:" in done.stdout, done


@PROGRAMS
def test_missing_file_is_one_clear_line(stack, program, file):
    done = run(stack, program, "/nowhere/file.yaml")
    assert done.returncode == 2 and "/nowhere/file.yaml" in done.stdout, done
    assert len(done.stdout.splitlines()) == 1


@pytest.mark.parametrize("missing", [("tickets",), ("pass",), ("tls",), ("origin",), ("admin",)])
def test_gateway_without_its_keys_refuses_to_start(stack, missing):
    done = run_gateway(stack, {missing[0]: None})
    assert done.returncode == 2 and missing[0] in done.stdout, done


@pytest.mark.parametrize("section, option", [
    ("tls", "certificate"), ("tls", "key"), ("pass", "keys"), ("tickets", "keys"),
    ("accounts", "keys"), ("origin", "token_file"), ("admin", "token_file")])
def test_missing_file_of_a_key_is_one_clear_line(stack, section, option):
    value = "/nowhere/at-all"
    done = run_gateway(stack, {section: {option: [value] if option == "keys" else value}})
    assert done.returncode != 0 and value in done.stdout, done
    assert len(done.stdout.splitlines()) == 1, done


def test_certificate_and_key_that_do_not_fit_are_told(stack):
    done = run_gateway(stack, {"tls": {"key": stack.pass_key}})
    assert done.returncode != 0 and "key" in done.stdout, done


def test_port_in_use_is_one_clear_line(stack):
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]
        for more in ({"listen": [f"127.0.0.1:{port}"]}, {"admin": {"listen": [f"127.0.0.1:{port}"]}}):
            done = run_gateway(stack, more)
            assert done.returncode not in (0, None) and str(port) in done.stdout, done
            told = [line for line in done.stdout.splitlines() if str(port) in line]
            assert len(told) == 1, done
        config.write(stack.origin_file, config.origin(stack), {"listen": [f"127.0.0.1:{port}"]})
        done = run(stack, "origin/sluice-origin", stack.origin_file)
        assert done.returncode != 0 and str(port) in done.stdout, done


def test_unreachable_database_is_one_clear_line_of_init(stack):
    done = run(stack, "origin/sluice-origin", stack.origin_file, "--init")
    assert done.returncode not in (0, 2) and len(done.stdout.splitlines()) <= 2, done
    assert "127.0.0.1" in done.stdout, done


def test_printed_configuration_loads_again_and_shows_no_secret(stack, tmp_path):
    done = run(stack, "gateway/sluice", stack.nodes[0].file, "-t")
    printed = yaml.safe_load(done.stdout)
    assert printed["limiter"]["network_failures_per_minute"] == 50
    assert printed["limiter"]["network_guest_joins_per_minute"] == 200
    again = os.path.join(stack.folder, "again.yaml")
    with open(again, "w") as out:
        out.write(done.stdout)
    assert run(stack, "gateway/sluice", again, "-t").stdout == done.stdout
    with open(stack.operator_token) as token:
        assert token.read().strip() not in done.stdout


CATALOG = """
    select 'function', oid, xmin::text from pg_proc
        where pronamespace in ('sluice'::regnamespace, 'sluice_api'::regnamespace)
    union all select 'table', oid, xmin::text from pg_class
        where relnamespace in ('sluice'::regnamespace, 'sluice_api'::regnamespace)
    union all select 'trigger', oid, xmin::text from pg_trigger
        where tgrelid in (select oid from pg_class where relnamespace = 'sluice'::regnamespace)
    order by 1, 2"""


def test_init_again_touches_nothing_that_is_in_use(own_shop):
    """Under an origin that runs and a transaction that holds its locks."""
    sale = own_shop.sale()
    user = psycopg2.connect(own_shop.stack.postgres.url)
    try:
        cursor = user.cursor()

        def ask(sql):
            cursor.execute(sql)
            return cursor.fetchall()
        before = ask(CATALOG)
        user.rollback()
        assert {"function", "table", "trigger"} <= {row[0] for row in before}
        verdict = ask("select sluice_api.invariant()")
        ask("lock table sluice.item, sluice.hold, sluice.journal in row exclusive mode; select 1")
        own_shop.stack.init_database()
        assert ask("select sluice_api.invariant()") == verdict
        user.rollback()
        assert ask(CATALOG) == before
    finally:
        user.close()
    assert own_shop.stack.origin.get(f"/v1/sales/{sale}").status == 200


def test_init_mends_what_is_missing(own_shop):
    with psycopg2.connect(own_shop.stack.postgres.url) as user:
        user.cursor().execute("drop function sluice_api.invariant()")
    user.close()
    own_shop.stack.init_database()
    assert own_shop.stack.origin.get("/v1/invariant").json["ok"]


def test_reload_with_a_broken_file_keeps_the_old_one(own_shop, expected_errors):
    expected_errors.append("reload refused, the old configuration stays")
    shop, node = own_shop, own_shop.stack.nodes[0]
    sale = shop.sale()
    with open(node.file, "a") as out:
        out.write("nonsense: 1\n")
    node.process.signal(1)
    wait_until(lambda: "nonsense" in node.process.log_text(), 5, "the fault is told")
    shop.logs.wait_error("reload refused, the old configuration stays")
    assert shop.flag(sale).status == 200
