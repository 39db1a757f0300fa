"""The header blocks of our answers, under every size of table a client may set: each
decodes to what the same question gets from a fresh connection."""
import json
import random

import hpack
import pytest

import wire
from rows import Talk, fields_of
from shopper import API

# Fields that tell of the moment an answer is made; a place in line differs in more.
OF_THE_MOMENT, OF_A_PLACE = ("date",), ("date", "retry-after", "content-length")
ROUNDS = 120


class Reader(Talk):
    """A talk that tells the decoder of the sizes it may expect, when they count."""

    def __init__(self, target):
        super().__init__(target)
        self.limits, self.blocks = [], {}

    def limit_table(self, *sizes):
        self.send(wire.settings(*[(wire.HEADER_TABLE_SIZE, size) for size in sizes]))
        self.limits.append(sizes)

    def take(self, kind, flags, stream, payload):
        if kind == wire.HEADERS:
            self.blocks[stream] = payload
        super().take(kind, flags, stream, payload)
        if kind == wire.SETTINGS and flags & wire.ACK and self.acks > 1:
            self.decoder.max_allowed_table_size = self.limits.pop(0)[-1]


def questions(gateway):
    """Pages and other answers, of several sales: (method, path, more)."""
    out = [("GET", f"{API}/sales", []), ("GET", f"{API}/jwks.json", []),
           ("GET", "/nowhere", []), ("GET", "/a//b", []), ("get", f"{API}/sales", []),
           ("GET", "/nowhere", [("accept", "text/html")]),
           ("GET", f"{API}/sales", [("x-many", "v" * 17000)]),
           ("POST", gateway.target.sink, [("content-length", "0")]),
           ("GET", f"{API}/sales", [("host", "other.test")])]
    for sale in gateway.sales:
        flag = f"{API}/sales/{sale}"
        out += [("GET", flag, []), ("HEAD", flag, []), ("POST", flag, []),
                ("GET", flag, [("if-none-match", gateway.etag(sale))]),
                ("GET", f"{flag}/line", []), ("DELETE", f"{flag}/line", []),
                ("POST", f"{flag}/line", []), ("GET", f"{flag}/draw", [])]
    return out


def ask(talk, stream, question):
    method, path, more = question
    fields = fields_of(talk, method, path, more)
    talk.send(wire.headers(stream, wire.block(fields[:4]) + wire.block(fields[4:], huffman=True)))


def heard(talk, stream, question):
    one, is_place = talk.stream(stream), question[1].endswith("/line")
    assert one.reset is None and not talk.block
    gone = OF_A_PLACE if is_place else OF_THE_MOMENT
    is_ours = question[1].startswith(API) and not is_place
    return [tuple(field) for field in one.fields if field[0] not in gone], is_ours and one.body


@pytest.fixture(scope="module")
def expected(gateway):
    """[(question, answer)], each from a connection of its own."""
    found = []
    for question in questions(gateway):
        talk = Reader(gateway.target)
        talk.open()
        ask(talk, 1, question)
        assert talk.wait(lambda: talk.stream(1).is_over), question
        found.append((question, heard(talk, 1, question)))
        talk.close()
    statuses = {answer[0][0][1] for _, answer in found}
    assert statuses >= {"200", "204", "304", "400", "401", "404", "405", "431"}, statuses
    return found


CHANGES = {
    "never": {}, "0 at once": {0: (0,)}, "small at once": {0: (100,)},
    "exactly the default": {0: (4096,)}, "large at once": {0: (65536,)},
    "0 later": {10: (0,)}, "a byte less later": {10: (4095,)}, "0 and back": {10: (0,), 20: (4096,)},
    "0 and back at once": {10: (0, 4096)}, "up and down": {5: (65536,), 10: (200,), 15: (65536,),
                                                          20: (0,), 25: (4096,)},
    "again and again": {number: (number * 97 % 5000,) for number in range(0, ROUNDS, 2)},
}


@pytest.mark.parametrize("change", CHANGES)
def test_answers_decode_right_whatever_came_before(target, expected, change):
    chance = random.Random(change)
    talk = Reader(target)
    talk.open()
    talk.send(wire.window(0, 2 ** 30))
    stream = -1
    for number in range(ROUNDS):
        if number in CHANGES[change]:
            talk.limit_table(*CHANGES[change][number])
        asked = {}
        # The same few for a while, so that forms for repetition are used.
        few = chance.sample(expected, chance.choice((1, 2, 3, len(expected))))
        for _ in range(chance.randint(1, 12)):
            stream += 2
            asked[stream] = chance.choice(few)
            ask(talk, stream, asked[stream][0])
        assert talk.wait(lambda: all(talk.stream(number).is_over for number in asked))
        for one, (question, answer) in asked.items():
            assert heard(talk, one, question) == answer, (question, number)
    talk.close()


def test_a_page_that_comes_again_is_shorter(target):
    talk = Reader(target)
    talk.open()
    for stream in (1, 3, 5):
        ask(talk, stream, ("GET", target.page, []))
        talk.wait(lambda: talk.stream(stream).is_over)
    first, second, third = (len(talk.blocks[stream]) for stream in (1, 3, 5))
    assert second == third < first / 2
    talk.close()


def test_after_a_smaller_table_blocks_stand_alone(target):
    talk = Reader(target)
    talk.open()
    ask(talk, 1, ("GET", target.page, []))
    talk.wait(lambda: talk.stream(1).is_over)
    talk.limit_table(0)
    for stream in (3, 5):
        ask(talk, stream, ("GET", target.page, []))
        talk.wait(lambda: talk.stream(stream).is_over)
    assert talk.blocks[3][:1] == wire.table_size(0)
    alone = hpack.Decoder()
    assert alone.decode(talk.blocks[5]) == talk.stream(1).fields
    assert not alone.header_table.dynamic_entries
    talk.close()


def test_what_is_secret_is_never_indexed(target, gateway):
    talk = Reader(target)
    talk.open()
    token = gateway.shop.token()
    ask(talk, 1, ("POST", f"{API}/sales/{gateway.sales[0]}/line",
                  [("authorization", f"Bearer {token}")]))
    talk.wait(lambda: talk.stream(1).is_over)
    secret = [field for field in talk.stream(1).fields if field[0] in ("set-cookie", "sluice-pass")]
    assert secret, talk.stream(1).fields
    assert all(isinstance(field, hpack.NeverIndexedHeaderTuple) for field in secret)
    assert json.loads(talk.stream(1).body)["sale"] == gateway.sales[0]
    talk.close()
