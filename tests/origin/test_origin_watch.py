"""Who holds the row that others wait for."""
import concurrent.futures

from run.process import wait_until


def wait(origin, item):
    """As an origin's query would, but with no limit to its patience."""
    with origin.database() as cursor:
        cursor.execute("/* sluice reserve */ update sluice.item set n = n where item = %s", (item,))


def test_who_holds_the_row_since_when_and_for_what(origin):
    item = origin.item(5)
    sale = origin.sale(item)  # open: the origin looks by itself, too
    wait_until(lambda: origin.api.get("/v1/locks").json["locks"] == [], 20, "nobody waits")
    looks = origin.metric("sluice_lock_looks_total")
    with origin.database() as cursor, concurrent.futures.ThreadPoolExecutor(2) as pool:
        cursor.execute("set application_name = 'stranger'")
        cursor.execute("begin; /* sluice step */ select pg_backend_pid() from sluice.item "
                       "where item = %s for update", (item,))
        holder = cursor.fetchone()[0]
        cursor.execute("/* sluice step */ select to_char(xact_start at time zone 'UTC', "
                       "'YYYY-MM-DD\"T\"HH24:MI:SS.MS\"Z\"') from pg_stat_activity where pid = %s",
                       (holder,))
        since = cursor.fetchone()[0]
        try:
            waiters = [pool.submit(wait, origin, item) for _ in range(2)]
            told = wait_until(lambda: (lambda answer: answer["waiting"] == 2 and answer)(
                origin.api.get("/v1/locks").json), 20, "both wait")
            wait_until(lambda: origin.metric("sluice_lock_waiting") == 2, 20, "the origin saw it")
            assert origin.metric("sluice_lock_holding") >= 1
            assert origin.metric("sluice_lock_oldest_seconds") > 0
        finally:
            cursor.execute("rollback")
        for waiter in waiters:
            waiter.result()
    oldest = told["locks"][0]
    assert oldest["pid"] == holder and oldest["behind"] == []
    assert (oldest["application"], oldest["tag"]) == ("stranger", "step")
    assert (oldest["state"], oldest["since"]) == ("idle in transaction", since)
    assert oldest["row"] == {"tenant": "shop", "item": item}
    assert oldest["waiting_tags"] == ["reserve"] and oldest["waiting"] >= 1
    assert oldest["held_seconds"] >= oldest["waited_seconds"] >= 0
    wait_until(lambda: origin.metric("sluice_lock_waiting") == 0, 20, "nobody waits any more")
    assert origin.metric("sluice_lock_looks_total") > looks
    assert origin.operate(sale, "close").status == 200


def test_nobody_looks_while_no_sale_is_open(make_origin):
    origin = make_origin(watch={"interval": "10ms"})
    wait_until(lambda: origin.metric("sluice_queries_total", tag="locks") > 5, 20, "it asks")
    assert origin.metric("sluice_lock_looks_total") == 0
    origin.sale(origin.item(1))
    wait_until(lambda: origin.metric("sluice_lock_looks_total") > 1, 20, "it looks")
