"""RFC 7541: header blocks, right and wrong. Each begins with a whole request."""
from wire import *  # noqa: F403
from messages import AT_ONCE
from rows import Row, request

BROKEN = "goaway COMPRESSION_ERROR"
FIRST = 62  # of the dynamic table
ENTRY = 32  # what an entry costs besides its bytes


def get(*more, before=b"", stream=1):
    """A request whose block goes on with `more`."""
    return lambda talk: headers(stream, before + request()(talk)[9:] + b"".join(more))


def row(section, title, *more, want="200", **rest):
    return Row(section, title, [get(*more)], want, **rest)


def two(section, title, first, second, want=None, before=b"", why=None):
    """Two requests; the second block begins with `before` and ends with `second`."""
    want = want or {1: "200", 3: "200"}
    return Row(section, title, [get(*first), get(second, before=before, stream=3)], want, why=why)


def added(name, value="v", **how):
    return literal(name, value, kind="added", **how)


# What the static table may add to a request without making it malformed.
PLAIN = [n for n in range(15, 62) if n not in (28, 38, 57)]

STATIC = [
    row("7541 A", "fields of the static table", *[indexed(n) for n in PLAIN]),
    *[Row("7541 A", f"static entry {n} for :method",
          [lambda talk, n=n: headers(1, indexed(n) + request()(talk)[9 + len(
              literal(":method", "GET")):])], want, why="peers that take a POST for the page")
      for n, want in ((2, "200"), (3, "405"))],
    *[row("7541 A", f"static entry {n} is a pseudo-field too many", indexed(n),
          want="reset PROTOCOL_ERROR", why=AT_ONCE) for n in (1, 2, 4, 7, 8, 14)],
    row("7541 2.3.3", "index 0", indexed(0), want=BROKEN),
    row("7541 2.3.3", "the first index behind an empty table", indexed(FIRST), want=BROKEN),
    row("7541 2.3.3", "an index far behind the table", indexed(4000), want=BROKEN),
    row("7541 2.3.3", "a name's index behind an empty table", literal(FIRST, "x"), want=BROKEN),
    row("7541 2.3.3", "a name's index behind it, to be added", literal(FIRST, "x", kind="added"),
        want=BROKEN),
    row("7541 2.3.3", "a name's index behind it, never indexed",
        literal(FIRST, "x", kind="never"), want=BROKEN),
]

FORMS = [
    *[row("7541 6.2", f"a literal, {kind}, {coding}, {naming}",
          literal(field, "some-value", kind=kind, huffman=coding == "Huffman"))
      for kind in ("plain", "never", "added") for coding in ("as it is", "Huffman")
      for naming, field in (("new name", "x-name"), ("name of the static table", 58))],
    *[row("7541 6.2", f"a name of the dynamic table, {kind}", added("x-name"),
          literal(FIRST, "other", kind=kind)) for kind in ("plain", "never", "added")],
    row("7541 6.1", "an entry of the dynamic table", added("x-name"), indexed(FIRST)),
    row("7541 6.2", "an empty value", literal("x-name", "")),
    row("7541 6.2", "an empty value, Huffman", literal("x-name", "", huffman=True)),
    row("7541 6.2.2", "what is not to be indexed is not", literal("x-name", "v"), indexed(FIRST),
        want=BROKEN),
    row("7541 6.2.3", "what is never indexed is not", literal("x-name", "v", kind="never"),
        indexed(FIRST), want=BROKEN),
    two("7541 2.3.2", "an entry is there in the next block", [added("x-name")], indexed(FIRST)),
    two("7541 2.3.2", "the youngest entry comes first", [added("x-a"), added(":bad")],
        indexed(FIRST), want={1: "reset PROTOCOL_ERROR", 3: "reset PROTOCOL_ERROR"}, why=AT_ONCE),
    two("7541 2.3.2", "the older entry comes behind it", [added(":bad"), added("x-a")],
        indexed(FIRST), want={1: "reset PROTOCOL_ERROR", 3: "200"}, why=AT_ONCE),
    two("7541 2.3.2", "no entry behind the oldest", [added("x-a"), added("x-b")],
        indexed(FIRST + 2), want=BROKEN),
    Row("7541 2.3.2", "a duplicate has a place of its own",
        [get(added("x-a"), added("x-a"), indexed(FIRST + 1))], "200"),
]

STRINGS = [
    row("7541 5.2", "every byte a value may have, Huffman",
        literal("x-name", bytes([*range(0x21, 0x7f), *range(0x80, 0x100)]), huffman=True)),
    row("7541 5.2", "EOS in a string",
        literal("x-name", "")[:-1] + huffman_bits(bits_of(b"ab") + EOS + "1" * 7 + "1" * (
            -(len(bits_of(b"ab")) + 37) % 8)), want=BROKEN),
    row("7541 5.2", "EOS alone", literal("x-name", "")[:-1] + huffman_bits(EOS + "11"),
        want=BROKEN),
    row("7541 5.2", "padding of 8 bits",
        literal("x-name", "")[:-1] + huffman_bits(bits_of(b"&") + "1" * 8), want=BROKEN),
    row("7541 5.2", "padding of 16 bits",
        literal("x-name", "")[:-1] + huffman_bits(bits_of(b"&") + "1" * 16), want=BROKEN),
    row("7541 5.2", "a byte of padding alone", literal("x-name", "")[:-1] + huffman_bits("1" * 8),
        want=BROKEN),
    row("7541 5.2", "padding of zeros",
        literal("x-name", "")[:-1] + huffman_bits(bits_of(b"a") + "000"), want=BROKEN),
    row("7541 5.2", "padding with a zero in it",
        literal("x-name", "")[:-1] + huffman_bits(bits_of(b"a") + "110"), want=BROKEN),
    *[row("7541 5.2", f"padding of {-len(bits_of(text)) % 8} bits",
          literal("x-name", text, huffman=True))
      for text in (b"X", b"aaa", b"b", b"a", b"bb", b"ab", b"aa", b"abb")],
    row("7541 5.2", "padding of zeros in a name",
        integer(0, 4) + huffman_bits(bits_of(b"x") + "0" * (-len(bits_of(b"x")) % 8)) + string("v"),
        want=BROKEN),
    row("7541 5.2", "a string longer than the block",
        integer(0, 4) + string("x-name") + integer(50, 7) + b"short", want=BROKEN),
    row("7541 5.2", "a name longer than the block", integer(0, 4) + integer(50, 7) + b"short",
        want=BROKEN),
    row("7541 5.2", "a length of a gigabyte",
        integer(0, 4) + string("x-name") + integer(2 ** 30, 7) + b"short", want=BROKEN),
    row("7541 6.2", "a literal cut behind its first byte", integer(0, 4), want=BROKEN),
    row("7541 6.2", "a literal without a value", integer(0, 4) + string("x-name"), want=BROKEN),
    row("7541 6.2", "an upper-case name, Huffman", literal("X-Name", "v", huffman=True),
        want="reset PROTOCOL_ERROR"),
    row("7541 6.2", "a line end, Huffman", literal("x-name", "a\r\nb", huffman=True),
        want="reset PROTOCOL_ERROR", why=AT_ONCE),
]

INTEGERS = [
    row("7541 5.1", "a length in three bytes", literal("x-name", "v" * 3000)),
    row("7541 5.1", "a length with zeros behind",
        integer(0, 4) + string("x-name") + b"\x7f\x80\x80\x80\x00" + b"v" * 127,
        why="5.1 allows the form; some set a limit of bytes"),
    row("7541 5.1", "an index cut short", b"\xff", want=BROKEN),
    row("7541 5.1", "an index cut in its second byte", b"\xff\x80", want=BROKEN),
    row("7541 5.1", "a size cut short", b"", b"\x3f", want=BROKEN),
    row("7541 5.1", "an index of 2^32", integer(2 ** 32, 7, 0x80), want=BROKEN),
    row("7541 5.1", "an index of 2^64", integer(2 ** 64, 7, 0x80), want=BROKEN),
    row("7541 5.1", "an index that overflows onto a good one",
        b"\xff" + integer(2 ** 32 + 15 - 127 + 127, 7, 0x80)[1:], want=BROKEN),
    row("7541 5.1", "an index without end", b"\xff" + b"\xff" * 20, want=BROKEN),
    row("7541 5.1", "a length of 2^32", integer(0, 4) + string("x-name") + integer(2 ** 32, 7),
        want=BROKEN),
    row("7541 5.1", "a name's index of 2^31", integer(2 ** 31, 4), want=BROKEN),
]


def sized(section, title, *sizes, want="200", **more):
    return Row(section, title, [get(before=b"".join(table_size(n) for n in sizes))], want, **more)


def emptied(talk):
    """An entry larger than the table empties it; the name may come from it."""
    return get(added("x-a"), added("x-big", "v" * 4096), stream=1)(talk)


FULL = 4096
HALF = "v" * (FULL // 2 - ENTRY - 3)

TABLE = [
    sized("7541 6.3", "a size of 0", 0), sized("7541 6.3", "the greatest size", FULL),
    sized("7541 6.3", "two sizes", 0, FULL), sized("7541 6.3", "two sizes, falling", 1000, 10),
    sized("7541 6.3", "a size above the limit", FULL + 1, want=BROKEN),
    sized("7541 6.3", "a size of 2^32", 2 ** 32, want=BROKEN),
    sized("7541 6.3", "a size above the limit behind a good one", 0, FULL + 1, want=BROKEN),
    row("7541 4.2", "a size behind a field", table_size(0), want=BROKEN),
    row("7541 4.2", "a size between fields", table_size(100), literal("x-a", "b"), want=BROKEN,
        why="4.2 wants it at the block's beginning; some take it anywhere"),
    Row("7541 4.2", "a size alone makes no request", [headers(1, table_size(100))],
        "reset PROTOCOL_ERROR", why=AT_ONCE),
    Row("7541 4.2", "a size in the middle, over two frames",
        [lambda talk: get()(talk)[:4] + b"\x01" + get()(talk)[5:] + continuation(1, table_size(0))],
        BROKEN),
    two("7541 4.3", "a size of 0 empties the table", [added("x-a")], indexed(FIRST), want=BROKEN,
        before=table_size(0)),
    two("7541 4.3", "a size of 0 and back empties the table", [added("x-a")], indexed(FIRST),
        want=BROKEN, before=table_size(0) + table_size(FULL)),
    two("7541 4.3", "a smaller size keeps what fits", [added("x-old"), added("x-new")],
        indexed(FIRST), before=table_size(6 + ENTRY)),
    two("7541 4.3", "a smaller size drops the oldest", [added("x-old"), added("x-new")],
        indexed(FIRST + 1), want=BROKEN, before=table_size(6 + ENTRY)),
    two("7541 4.3", "one byte less and nothing fits", [added("x-old"), added("x-new")],
        indexed(FIRST), want=BROKEN, before=table_size(6 + ENTRY - 1)),
    two("7541 4.4", "an entry that just fits the table", [added("x-a", "v" * (FULL - ENTRY - 3))],
        indexed(FIRST)),
    two("7541 4.4", "an entry a byte too large empties it",
        [added("x-b"), added("x-a", "v" * (FULL - ENTRY - 2))], indexed(FIRST), want=BROKEN),
    two("7541 4.4", "two halves fit", [added("x-a", HALF), added("x-b", HALF)],
        indexed(FIRST + 1)),
    two("7541 4.4", "a third half drops the first",
        [added("x-a", HALF), added("x-b", HALF), added("x-c", HALF)], indexed(FIRST + 2),
        want=BROKEN),
    Row("7541 4.4", "the name of an entry that is dropped by it",
        [get(added("x-a", HALF), added("x-b", HALF)),
         get(literal(FIRST + 1, HALF, kind="added"), indexed(FIRST), stream=3)],
        {1: "200", 3: "200"}),
    Row("7541 4.4", "the name of an entry that is dropped, for one too large",
        [get(added("x-a", "v" * 100)), get(literal(FIRST, "v" * FULL, kind="added"), stream=3),
         get(indexed(FIRST), stream=5)], BROKEN),
    Row("7541 4.4", "no table, and entries to add to it",
        [get(added("x-a"), added("x-b"), before=table_size(0)),
         get(added("x-a"), stream=3)], {1: "200", 3: "200"}),
    Row("7541 4.4", "no table, and an index", [get(added("x-a"), indexed(FIRST),
                                                   before=table_size(0))], BROKEN,
        why="4.3: the size is the encoder's to choose; some go on with their own"),
    Row("7541 4", "a thousand entries through the table",
        [*[get(*[added(f"x-{n}-{m}", "v" * 20) for m in range(50)], indexed(FIRST + 49),
               stream=1 + 2 * n) for n in range(20)]], {1 + 2 * n: "200" for n in range(20)}),
]

def by_index(stream):
    """Asks for whatever path the dynamic table begins with."""
    return lambda talk: headers(stream, block([(":method", "GET"), (":scheme", "https"),
                                               (":authority", talk.target.authority)])
                                + indexed(FIRST))


def with_path(stream, path=None, before=b""):
    """Asks for a path and puts it into the table."""
    return lambda talk: headers(stream, before + block([(":method", "GET"), (":scheme", "https"),
                                                        (":authority", talk.target.authority)])
                                + added(":path", path or talk.target.page))


def again(title, *between, want):
    """The same block three times, something that changes the table, and the block."""
    return Row("7541 2.2", f"a block comes again, the table changed by {title}",
               [with_path(1), by_index(3), by_index(5), by_index(7), *between, by_index(21)],
               {1: "200", 3: "200", 5: "200", 7: "200", **want} if isinstance(want, dict) else want,
               why="peers that answer any path")


AGAIN = [
    again("nothing", want={21: "200"}),
    again("another request", with_path(9, "/nowhere"), want={9: "404", 21: "404"}),
    again("a malformed request", get(added("Upper"), added(":path", "/nowhere"), stream=9),
          want={9: "reset PROTOCOL_ERROR", 21: "404"}),
    again("a request in two frames",
          lambda talk: headers(9, with_path(9, "/nowhere")(talk)[9:20], end_headers=False)
          + continuation(9, with_path(9, "/nowhere")(talk)[20:]), want={9: "404", 21: "404"}),
    again("a padded request", lambda talk: headers(9, with_path(9, "/nowhere")(talk)[9:], pad=3),
          want={9: "404", 21: "404"}),
    again("trailers", lambda talk: headers(9, block([
        (":method", "POST"), (":scheme", "https"), (":authority", talk.target.authority),
        (":path", talk.target.sink)]), end=False), headers(9, added(":path", "/nowhere")),
        want={9: "reset PROTOCOL_ERROR", 21: "404"}),
    again("a request that is reset at once", with_path(9, "/nowhere"), rst(9),
          want={21: "404"}),
    again("a size", get(before=table_size(0) + table_size(FULL), stream=9), want=BROKEN),
]

ROWS = AGAIN + STATIC + FORMS + STRINGS + INTEGERS + TABLE
