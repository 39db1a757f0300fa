"""HTTP/2 by hand: frames (RFC 9113) and header blocks (RFC 7541), right or wrong.

Everything here returns bytes to send. Nothing checks what it is asked for.
"""
import struct

from hpack.huffman_constants import REQUEST_CODES, REQUEST_CODES_LENGTH

PREFACE = b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n"

(DATA, HEADERS, PRIORITY, RST_STREAM, SETTINGS, PUSH_PROMISE, PING, GOAWAY, WINDOW_UPDATE,
 CONTINUATION) = range(10)
PRIORITY_UPDATE = 16

ACK = END_STREAM = 0x1
END_HEADERS = 0x4
PADDED = 0x8
PRIORITIZED = 0x20

ERRORS = ["NO_ERROR", "PROTOCOL_ERROR", "INTERNAL_ERROR", "FLOW_CONTROL_ERROR", "SETTINGS_TIMEOUT",
          "STREAM_CLOSED", "FRAME_SIZE_ERROR", "REFUSED_STREAM", "CANCEL", "COMPRESSION_ERROR",
          "CONNECT_ERROR", "ENHANCE_YOUR_CALM", "INADEQUATE_SECURITY", "HTTP_1_1_REQUIRED"]

HEADER_TABLE_SIZE, ENABLE_PUSH, MAX_CONCURRENT, INITIAL_WINDOW, MAX_FRAME, MAX_LIST = range(1, 7)
CONNECT_PROTOCOL, NO_PRIORITIES = 8, 9

WINDOW = 65535
WINDOW_MAX = 2 ** 31 - 1
FRAME_MAX = 16384


def error_name(code):
    return ERRORS[code] if code < len(ERRORS) else str(code)


# ---- frames ----------------------------------------------------------------

def frame(kind, flags, stream, payload=b"", length=None):
    length = len(payload) if length is None else length
    return (struct.pack(">I", length)[1:] + bytes([kind, flags]) + struct.pack(">I", stream)
            + payload)


def padded(payload, pad):
    return payload if pad is None else bytes([pad]) + payload + bytes(pad)


def data(stream, payload=b"", end=False, pad=None, flags=0):
    flags |= (END_STREAM if end else 0) | (0 if pad is None else PADDED)
    return frame(DATA, flags, stream, padded(payload, pad))


def headers(stream, block, end=True, end_headers=True, pad=None, priority=None, flags=0):
    """`priority`: the five bytes of a stream's place, as (parent, weight - 1)."""
    if priority is not None:
        flags |= PRIORITIZED
        block = struct.pack(">IB", *priority) + block
    flags |= (END_STREAM if end else 0) | (END_HEADERS if end_headers else 0)
    flags |= 0 if pad is None else PADDED
    return frame(HEADERS, flags, stream, padded(block, pad))


def continuation(stream, block=b"", end_headers=True):
    return frame(CONTINUATION, END_HEADERS if end_headers else 0, stream, block)


def priority(stream, parent=0, weight=15):
    return frame(PRIORITY, 0, stream, struct.pack(">IB", parent, weight))


def rst(stream, code=8):
    return frame(RST_STREAM, 0, stream, struct.pack(">I", code))


def settings(*pairs, flags=0, stream=0):
    return frame(SETTINGS, flags, stream, b"".join(struct.pack(">HI", *pair) for pair in pairs))


def settings_ack():
    return frame(SETTINGS, ACK, 0)


def ping(payload=b"12345678", flags=0, stream=0):
    return frame(PING, flags, stream, payload)


def goaway(last=0, code=0, debug=b"", stream=0):
    return frame(GOAWAY, 0, stream, struct.pack(">II", last, code) + debug)


def window(stream, by):
    return frame(WINDOW_UPDATE, 0, stream, struct.pack(">I", by))


def push_promise(stream, promised, block=b""):
    return frame(PUSH_PROMISE, END_HEADERS, stream, struct.pack(">I", promised) + block)


def priority_update(prioritized, value=b"u=3", stream=0):
    return frame(PRIORITY_UPDATE, 0, stream, struct.pack(">I", prioritized) + value)


# ---- header blocks ---------------------------------------------------------

def integer(n, bits, first=0):
    """RFC 7541, 5.1; `first` has the bits above the prefix."""
    most = (1 << bits) - 1
    if n < most:
        return bytes([first | n])
    out, n = [first | most], n - most
    while n >= 128:
        out.append(128 | n % 128)
        n //= 128
    return bytes([*out, n])


def bits_of(text):
    return "".join(f"{REQUEST_CODES[byte]:0{REQUEST_CODES_LENGTH[byte]}b}" for byte in text)


EOS = f"{REQUEST_CODES[256]:0{REQUEST_CODES_LENGTH[256]}b}"


def huffman_bits(bits):
    """A string literal of these bits, which fill whole bytes."""
    assert len(bits) % 8 == 0
    coded = int("1" + bits, 2).to_bytes(len(bits) // 8 + 1, "big")[1:]
    return integer(len(coded), 7, 0x80) + coded


def string(text, huffman=False):
    text = text.encode("latin-1") if isinstance(text, str) else text
    if not huffman:
        return integer(len(text), 7) + text
    bits = bits_of(text)
    return huffman_bits(bits + "1" * (-len(bits) % 8))


def indexed(n):
    return integer(n, 7, 0x80)


def table_size(n):
    return integer(n, 5, 0x20)


def literal(name, value, kind="plain", huffman=False):
    """`name`: text or an index; `kind`: plain, never (indexed) or added (to the table)."""
    bits, first = {"plain": (4, 0x00), "never": (4, 0x10), "added": (6, 0x40)}[kind]
    if isinstance(name, int):
        return integer(name, bits, first) + string(value, huffman)
    return integer(0, bits, first) + string(name, huffman) + string(value, huffman)


def block(fields, **how):
    return b"".join(literal(name, value, **how) for name, value in fields)
