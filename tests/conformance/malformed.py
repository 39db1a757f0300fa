"""Requests that are well-formed HTTP/2 and yet not to be trusted: what the gateway
itself decides. Where nothing else is said they go to the application behind it."""
from wire import *  # noqa: F403
from rows import AUTHORITY, HOST, METHOD, SCHEME, Row, fields, post, request

LIST = "/_sluice/v1/sales"


def listed(*pairs, method="GET", scheme="https", path=LIST):
    """The list of sales, which is served to who asks the right host."""
    return fields((":method", method), (":scheme", scheme), (":path", path), *pairs)


def host(title, want, *pairs):
    return Row("hosts", title, [listed(*pairs)], want)


HOSTS = [
    host("the right one", "200", HOST),
    host("a user in front", "400", (":authority", "admin@127.0.0.1")),
    host("a user and a password in front", "400", (":authority", "a:b@127.0.0.1")),
    host("two hosts", "400", (":authority", "127.0.0.1,evil.test")),
    host("two hosts and a space", "reset PROTOCOL_ERROR", (":authority", "127.0.0.1, evil.test")),
    host("another host beside :authority", "400", HOST, ("host", "evil.test")),
    host("another :authority beside host", "400", (":authority", "evil.test"),
         ("host", AUTHORITY)),
    host("a host that is not ours", "421", (":authority", "evil.test")),
    host("a host that is not ours, in host", "421", ("host", "evil.test")),
    host("our host with a dot behind", "200", (":authority", "127.0.0.1.")),
    host("a port that is none", "400", (":authority", "127.0.0.1:x")),
    host("a port too long", "400", (":authority", "127.0.0.1:0000000443")),
    host("a colon and no port", "400", (":authority", "127.0.0.1:")),
    host("half an IPv6", "400", (":authority", "[::1")),
    host("a percent sign", "400", (":authority", "127.0.0.1%41")),
    host("bytes above ASCII", "reset PROTOCOL_ERROR", (":authority", "127.0.0.1\xe4")),
    *[host(f"the character {c}", "reset PROTOCOL_ERROR", (":authority", f"127.0.0.1{c}x"))
      for c in '/#? "<>\\^`{|}'],
]


def path(title, text, want):
    return Row("paths", title, [fields(METHOD, SCHEME, HOST, (":path", text))], want)


PATHS = [
    path("a fragment", "/a#b", "400"), path("a fragment behind a query", "/a?b#c", "400"),
    path("a backslash", "/a\\b", "400"), path("two slashes", "//a", "400"),
    path("two slashes within", "/_sluice//v1/sales", "400"),
    path("a dot segment", "/a/./b", "400"), path("dots", "/a/../b", "400"),
    path("dots at the end", "/a/..", "400"), path("dots and parameters", "/a/..;x/b", "400"),
    path("escaped dots", "/%2e%2e/admin", "400"), path("escaped dots, upper case", "/%2E%2E/a", "400"),
    path("one escaped dot", "/.%2e/a", "400"), path("an escaped slash", "/a%2fb", "400"),
    path("an escaped backslash", "/a%5cb", "400"), path("an escaped NUL", "/a%00b", "400"),
    path("an escaped percent sign", "/a%252e", "400"), path("an escape cut short", "/a%2", "400"),
    path("an escape that is none", "/a%zz", "400"),
    path("an escaped control", "/a%0d%0ab", "400"),
    path("bytes above ASCII", "/caf\xe9", "400"), path("DEL", "/a\x7f", "reset PROTOCOL_ERROR"),
    path("a space", "/a b", "reset PROTOCOL_ERROR"),
    path("a line end", "/a\r\nx: y", "reset PROTOCOL_ERROR"), path("NUL", "/a\0", "reset PROTOCOL_ERROR"),
    path("a tab", "/a\tb", "reset PROTOCOL_ERROR"),
    path("an escape that stays what it is", "/a%20b", "404"),
    path("odd characters in a query", "/a?../%2e%2e//\\", "404"),
    path("bytes above ASCII in a query", "/a?\xe9", "400"),
    path("upper case of ours", "/_SLUICE/v1/sales", "404"),
    path("ours, and a slash", "/_sluice/v1/sales/", "400"),
    path("ours, and more", "/_sluice/v1/jwks.json/x", "404"),
    path("a sale in upper case", "/_sluice/v1/sales/S", "400"),
    path("a sale with dots", "/_sluice/v1/sales/a..b", "400"),
    path("a sale that is not there", "/_sluice/v1/sales/gone", "404"),
]

OTHERS = [
    *[Row("schemes", text, [listed(HOST, scheme=text)], "400")
      for text in ("http", "javascript", "HTTPS", "httpsx", "wss")],
    *[Row("methods", text, [listed(HOST, method=text)], "405")
      for text in ("get", "Get", "GETS", "TRACE", "TRACK", "PRI", "SSTP", "POST", "DELETE", "M-SEARCH")],
    Row("limits", "a thousand small fields", [request(more=[("x", "")] * 1000)], "431"),
    Row("limits", "a hundred fields", [request(more=[("x", "")] * 100)], "200"),
    Row("limits", "a value of 8 KB", [request(more=[("x", "v" * 8192)])], "200"),
    Row("limits", "16 thousand references to one cookie, on ten streams", [
        lambda talk: b"".join(
            headers(n, request()(talk)[9:] + (literal("cookie", "a", kind="added") if n == 1
                                              else b"") + indexed(62) * 15000)
            for n in range(1, 21, 2))], {n: "431" for n in range(1, 21, 2)}),
    Row("limits", "an entry of 4 KB, a thousand times",
        [lambda talk: headers(1, request()(talk)[9:]
                              + literal("x-a", "v" * 4000, kind="added") + indexed(62) * 1000)],
        "431"),
    Row("limits", "101 fields, malformed too", [request(more=[("x", "")] * 101 + [("Upper", "x")])],
        "431"),
    Row("limits", "a path of 8 KB", [request(path="/" + "p" * 8000)], "404"),
]


def forwarded(title, more, gone=(), **kept):
    """Sent on: of `gone` nothing, `kept` as given."""
    row = Row("forwarded", title, [post(more=more), data(1, b"body", end=True)], "200")
    row.gone, row.kept = gone, {name.replace("_", "-"): value for name, value in kept.items()}
    return row


FORWARDED = [
    forwarded("a length of our own", [], content_length="4"),
    forwarded("an underscore", [("x_account", "2"), ("x-account", "1")], ("x_account",)),
    forwarded("whose address it is", [("x-forwarded-for", "6.6.6.6"), ("forwarded", "for=6.6.6.6"),
                                      ("x-real-ip", "6.6.6.6")], x_forwarded_for="127.0.0.1"),
    forwarded("what only we may say", [("sluice-account", "x"), ("sluice-sale", "x"),
                                       ("sluice-pass", "x"), ("x-forwarded-proto", "http"),
                                       ("x-forwarded-host", "evil.test")],
              ("sluice-account", "sluice-pass"), x_forwarded_proto="https"),
    forwarded("expect", [("expect", "100-continue")], ("expect",)),
    forwarded("te", [("te", "trailers")], ("te",)),
    forwarded("crumbs", [("cookie", "a=1"), ("accept", "*/*"), ("cookie", "b=2"),
                         ("cookie", "c=3")], cookie="a=1; b=2; c=3"),
    forwarded("one cookie", [("cookie", "a=1; b=2")], cookie="a=1; b=2"),
    forwarded("a length with zeros in front", [("content-length", "0004")], content_length="4"),
]

ROWS = HOSTS + PATHS + OTHERS
