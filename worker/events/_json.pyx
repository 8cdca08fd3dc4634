"""JSON (RFC 8259), checked byte by byte without making anything of it.

What is no JSON is never taken for it; what is JSON but unusual (numbers of extreme size, nesting, half
surrogates) may be refused, for the caller has another reader for what is refused here.
"""

from libc.stdint cimport uint8_t, uint64_t
from libc.string cimport memcmp, memset

cdef enum:
    DEEPEST = 64
    DIGITS = 19  # that fit into 64 bits
    LONGEST = 9999  # digits, and the exponent
    LARGEST = 280  # power of ten that surely is a double

cdef enum Kind:
    PLAIN
    QUOTE
    BACKSLASH
    CONTROL
    WIDE

cdef uint8_t[256] KINDS
memset(KINDS, CONTROL, 0x20)
memset(KINDS + 0x80, WIDE, 0x80)
KINDS[34] = QUOTE
KINDS[92] = BACKSLASH


cdef inline bint is_digit(uint8_t byte) noexcept nogil:
    return <uint8_t> (byte - 48) < 10


cdef const uint8_t *blank(const uint8_t *at, const uint8_t *end) noexcept nogil:
    """Pass over white space; never NULL."""
    while at < end and (at[0] == 32 or at[0] == 10 or at[0] == 13 or at[0] == 9):
        at += 1
    return at


cdef const uint8_t *text(const uint8_t *at, const uint8_t *end, bint *escaped) noexcept nogil:
    """Go from behind the opening quote to the closing one; tell whether there are escapes."""
    cdef const uint8_t *start = at
    cdef bint wide = False
    cdef uint8_t kind
    escaped[0] = False
    while at < end:
        kind = KINDS[at[0]]
        if kind == PLAIN:
            at += 1
        elif kind == QUOTE:
            if wide and not is_utf8(start, at):
                return NULL
            return at
        elif kind == WIDE:
            wide = True
            at += 1
        elif kind == BACKSLASH:
            escaped[0] = True
            at = escape(at + 1, end)
            if at == NULL:
                return NULL
        else:
            return NULL
    return NULL


cdef const uint8_t *escape(const uint8_t *at, const uint8_t *end) noexcept nogil:
    """Pass over what follows a backslash."""
    cdef int unit
    if at >= end:
        return NULL
    if at[0] != 117:  # u
        # " / \ b f n r t
        if at[0] in (34, 47, 92, 98, 102, 110, 114, 116):
            return at + 1
        return NULL
    unit = four_digits(at + 1, end)
    if unit < 0 or 0xDC00 <= unit < 0xE000:
        return NULL
    at += 5
    if not 0xD800 <= unit < 0xDC00:
        return at
    if end - at < 6 or at[0] != 92 or at[1] != 117:
        return NULL
    if not 0xDC00 <= four_digits(at + 2, end) < 0xE000:
        return NULL
    return at + 6


cdef int four_digits(const uint8_t *at, const uint8_t *end) noexcept nogil:
    """Read four hexadecimal digits; -1 where they are not there."""
    cdef int i, unit = 0
    cdef uint8_t byte
    if end - at < 4:
        return -1
    for i in range(4):
        byte = at[i]
        if is_digit(byte):
            unit = unit * 16 + byte - 48
        elif 97 <= (byte | 32) <= 102:
            unit = unit * 16 + (byte | 32) - 87
        else:
            return -1
    return unit


cdef const uint8_t *number(const uint8_t *at, const uint8_t *end, Number *found) noexcept nogil:
    """Read a number up to its end; what may follow it is the caller's matter."""
    cdef const uint8_t *start
    cdef uint64_t digits = 0
    cdef int count = 0, exponent = 0, power = 0
    cdef bint minus = False
    found.cut = False
    found.whole = True
    found.negative = at < end and at[0] == 45
    if found.negative:
        at += 1
    if at >= end:
        return NULL
    start = at
    if at[0] == 48:
        at += 1
    else:
        while at < end and is_digit(at[0]):
            if count < DIGITS:
                digits = digits * 10 + (at[0] - 48)
                count += 1
            else:
                exponent += 1
                found.cut = found.cut or at[0] != 48
            at += 1
        # Numbers of a length that no exponent here tells are not for us.
        if at == start or at - start > LONGEST:
            return NULL
    if at < end and at[0] == 46:
        found.whole = False
        at += 1
        start = at
        while at < end and is_digit(at[0]):
            if count < DIGITS:
                digits = digits * 10 + (at[0] - 48)
                exponent -= 1
                if digits:
                    count += 1
            else:
                found.cut = found.cut or at[0] != 48
            at += 1
        if at == start or at - start > LONGEST:
            return NULL
    if at < end and (at[0] | 32) == 101:
        found.whole = False
        at += 1
        if at < end and (at[0] == 43 or at[0] == 45):
            minus = at[0] == 45
            at += 1
        start = at
        while at < end and is_digit(at[0]):
            power = power * 10 + (at[0] - 48)
            if power > LONGEST:
                return NULL
            at += 1
        if at == start:
            return NULL
        exponent += -power if minus else power
    found.digits = digits
    found.exponent = exponent
    return at


cdef const uint8_t *anything(const uint8_t *at, const uint8_t *end) noexcept nogil:
    """Pass over a value of any kind, to behind its last byte."""
    cdef uint8_t[DEEPEST] closing
    cdef int depth = 0
    cdef bint escaped
    cdef Number some
    while True:
        # A value begins here.
        if at >= end:
            return NULL
        if at[0] == 123 or at[0] == 91:
            if depth == DEEPEST:
                return NULL
            closing[depth] = at[0] + 2  # of { is }, of [ is ]
            depth += 1
            at = blank(at + 1, end)
            if at >= end:
                return NULL
            if at[0] != closing[depth - 1]:
                if closing[depth - 1] == 125:
                    at = name(at, end)
                    if at == NULL:
                        return NULL
                continue
            at += 1
            depth -= 1
        elif at[0] == 34:
            at = text(at + 1, end, &escaped)
            if at == NULL:
                return NULL
            at += 1
        elif at[0] == 116 or at[0] == 110:
            if end - at < 4 or memcmp(at, b"true" if at[0] == 116 else b"null", 4) != 0:
                return NULL
            at += 4
        elif at[0] == 102:
            if end - at < 5 or memcmp(at, b"false", 5) != 0:
                return NULL
            at += 5
        else:
            at = number(at, end, &some)
            # Beyond a double the other reader knows what to say.
            if at == NULL or some.exponent > LARGEST:
                return NULL
        # A value ends here.
        while depth:
            at = blank(at, end)
            if at >= end:
                return NULL
            if at[0] == 44:
                at = blank(at + 1, end)
                if closing[depth - 1] == 125:
                    at = name(at, end)
                    if at == NULL:
                        return NULL
                break
            if at[0] != closing[depth - 1]:
                return NULL
            at += 1
            depth -= 1
        else:
            return at


cdef const uint8_t *name(const uint8_t *at, const uint8_t *end) noexcept nogil:
    """Pass over a name and its colon, to the value."""
    cdef bint escaped
    if at >= end or at[0] != 34:
        return NULL
    at = text(at + 1, end, &escaped)
    if at == NULL:
        return NULL
    at = blank(at + 1, end)
    if at >= end or at[0] != 58:
        return NULL
    return blank(at + 1, end)


cdef bint is_utf8(const uint8_t *at, const uint8_t *end) noexcept nogil:
    """Tell whether bytes are UTF-8 (RFC 3629): shortest forms, no surrogates, up to U+10FFFF."""
    cdef uint8_t first, low, high
    cdef int more
    while at < end:
        first = at[0]
        at += 1
        if first < 0x80:
            continue
        low, high = 0x80, 0xBF
        if 0xC2 <= first <= 0xDF:
            more = 1
        elif 0xE0 <= first <= 0xEF:
            more = 2
            if first == 0xE0:
                low = 0xA0
            elif first == 0xED:
                high = 0x9F
        elif 0xF0 <= first <= 0xF4:
            more = 3
            if first == 0xF0:
                low = 0x90
            elif first == 0xF4:
                high = 0x8F
        else:
            return False
        if end - at < more or not low <= at[0] <= high:
            return False
        for i in range(1, more):
            if at[i] & 0xC0 != 0x80:
                return False
        at += more
    return True


def _anything(bytes value):
    """Let tests ask: whether the bytes are one JSON value that is taken."""
    cdef const uint8_t *start = value
    cdef const uint8_t *end = start + len(value)
    cdef const uint8_t *at = anything(blank(start, end), end)
    return at != NULL and blank(at, end) == end


def _is_utf8(bytes value):
    """Let tests ask."""
    cdef const uint8_t *start = value
    return is_utf8(start, start + len(value))
