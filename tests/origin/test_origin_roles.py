"""What the role that the origin serves with may not do, whatever it is told."""
import psycopg2
import pytest

from run import config
from run.process import Failed

DENIED = "42501"


@pytest.fixture
def serving(origin):
    connection = psycopg2.connect(config.serving(origin.url))
    connection.autocommit = True
    yield connection.cursor()
    connection.close()


def test_the_origin_serves_with_a_role_that_owns_nothing(origin):
    roles = origin.sql("select distinct usename, usesuper from pg_stat_activity join pg_user "
                       "using (usename) where application_name like 'sluice-origin%%' "
                       "and datname = current_database()")
    assert roles == [("sluice_service", False)]
    assert origin.sql("select count(*) from pg_class where relowner = 'sluice_service'::regrole") \
        == [(0,)]


@pytest.mark.parametrize("statement", [
    "update sluice.journal set qty = 0",
    "update sluice.journal set reason = 'x', relayed_at = now()",
    "delete from sluice.journal",
    "truncate sluice.journal",
    "delete from sluice.audit",
    "update sluice.audit set actor = 'x'",
    "truncate sluice.hold",
    "delete from sluice.item",
    "delete from sluice.sale",
    "insert into sluice.schema_version (version) values (99)",
    "alter table sluice.journal disable trigger all",
    "alter table sluice.journal drop column reason",
    "drop table sluice.journal",
    "drop trigger journal_keeps_rows on sluice.journal",
    "create or replace function sluice.journal_keeps_everything() returns trigger"
    " language plpgsql as 'begin return new; end'",
    "create table sluice.mine (x int)",
    "create function sluice_api.mine() returns int language sql as 'select 1'",
    "create index mine on sluice.journal (qty)",
    "set session_replication_role = replica",
    "set role sluice",
    "grant update on sluice.journal to sluice_service",
])
def test_it_is_refused(serving, statement):
    with pytest.raises(psycopg2.Error) as refused:
        serving.execute(statement)
        # A grant of what one has not got is a warning, and gives nothing.
        assert statement.startswith("grant"), statement
        serving.execute("update sluice.journal set qty = 0")
    assert refused.value.pgcode == DENIED, refused.value


def test_the_mark_it_may_set_once(origin, serving):
    origin.hold(origin.item(3))
    serving.execute("update sluice.journal set relayed_at = now() where relayed_at is null")
    with pytest.raises(psycopg2.Error, match="append only"):
        serving.execute("update sluice.journal set relayed_at = null")


def test_init_refuses_a_role_that_could_change_the_journal(make_origin):
    """The owner itself, and a superuser."""
    for role in ("the owner", "a superuser"):
        origin = make_origin(start=False)
        if role == "a superuser":
            origin.sql("do $$ begin create role sluice_strong superuser login password 'x'; "
                       "exception when duplicate_object then null; end $$")
        url = origin.url if role == "the owner" else origin.url.replace(
            f"//sluice:{origin.url.split(':')[2].split('@')[0]}@", "//sluice_strong:x@")
        origin.stack.options["origin"]["database"] = {"url": url}
        origin.stack.write_origin_file()
        with pytest.raises(Failed, match="still may change the journal"):
            origin.stack.init_database()
        assert origin.sql("select to_regnamespace('sluice')") == [(None,)]


def test_init_without_a_role_in_the_url_says_so(make_origin):
    origin = make_origin(start=False)
    origin.stack.options["origin"]["database"] = {"url": "host=127.0.0.1 dbname=x"}
    origin.stack.write_origin_file()
    with pytest.raises(Failed, match="database.url: names no role"):
        origin.stack.init_database()
