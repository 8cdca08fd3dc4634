"""Pages of a count window, packed from its ring and unpacked into columns.

What `worker.pages` does page by page in Python, with the same bytes, on little-endian machines. Whatever
is odd about pages that are read is left to it: it knows what to say.
"""

from cpython.bytes cimport PyBytes_AS_STRING, PyBytes_FromStringAndSize, PyBytes_GET_SIZE
from libc.stdint cimport int64_t, uint8_t, uint16_t, uint32_t, uint64_t
from libc.string cimport memcpy

import numpy as np

from engine._batch cimport pointer_of
from engine._window cimport CountWindow

from engine.results import Columns

cdef extern from *:
    """
    #include <stdint.h>
    #include <string.h>

    /* CRC-32 as zlib has it, eight bytes at a time. */
    static uint32_t crc_table[8][256];

    static void crc_prepare(void) {
        for (uint32_t n = 0; n < 256; n++) {
            uint32_t c = n;
            for (int k = 0; k < 8; k++) c = c & 1 ? 0xEDB88320u ^ (c >> 1) : c >> 1;
            crc_table[0][n] = c;
        }
        for (uint32_t n = 0; n < 256; n++)
            for (int k = 1; k < 8; k++) {
                uint32_t c = crc_table[k - 1][n];
                crc_table[k][n] = crc_table[0][c & 0xFF] ^ (c >> 8);
            }
    }

    static uint32_t crc_of(const void *data, size_t size, uint32_t crc) {
        const unsigned char *p = (const unsigned char *) data;
        crc = ~crc;
        while (size >= 8) {
            uint32_t low, high;
            memcpy(&low, p, 4);
            memcpy(&high, p + 4, 4);
            low ^= crc;
            crc = crc_table[7][low & 0xFF] ^ crc_table[6][low >> 8 & 0xFF]
                ^ crc_table[5][low >> 16 & 0xFF] ^ crc_table[4][low >> 24]
                ^ crc_table[3][high & 0xFF] ^ crc_table[2][high >> 8 & 0xFF]
                ^ crc_table[1][high >> 16 & 0xFF] ^ crc_table[0][high >> 24];
            p += 8;
            size -= 8;
        }
        while (size--) crc = crc_table[0][(crc ^ *p++) & 0xFF] ^ (crc >> 8);
        return ~crc;
    }
    """
    void crc_prepare()
    uint32_t crc_of(const void *data, size_t size, uint32_t crc) noexcept nogil

crc_prepare()

cdef enum:
    PAGE = 64  # events, worker.pages.PAGE_EVENTS
    ENVELOPE = 6
    HEAD = 12
    TIMES = 9
    VERSION = 1
    KIND = 1
    HAS_TIMES = 1
    HAS_WEIGHTS = 2

cdef struct Span:  # times of a page
    int64_t base
    uint64_t spread


def write(
    dict target, CountWindow window, bytes prefix, int64_t first_page, int64_t since, bytes head
):
    """Write what the changelog lacks of a window: see `worker.pages.write`."""
    cdef int64_t first = window.seen - window.ring.held, page, last, start, stop
    cdef int64_t written = (since + PAGE - 1) // PAGE
    last = (window.seen + PAGE - 1) // PAGE
    for page in range(max(since, first) // PAGE, last):
        start = max(page * PAGE, first)
        stop = min((page + 1) * PAGE, window.seen)
        key = key_of(prefix, page)
        target[key] = one_page(
            window, key, start, start - first, stop - first, head if page + 1 == last else b""
        )
    for page in range(first_page, min(first // PAGE, written)):
        target[key_of(prefix, page)] = None
    return last - first // PAGE - (written - first_page)


cdef bytes key_of(bytes prefix, int64_t page):
    cdef Py_ssize_t size = PyBytes_GET_SIZE(prefix), i
    cdef bytes key = PyBytes_FromStringAndSize(NULL, size + 8)
    cdef char *target = PyBytes_AS_STRING(key)
    memcpy(target, PyBytes_AS_STRING(prefix), size)
    for i in range(8):
        target[size + i] = <char> (page >> (56 - 8 * i))
    return key


cdef bytes one_page(
    CountWindow window, bytes key, int64_t first, Py_ssize_t low, Py_ssize_t high, bytes head
):
    """Pack the events with numbers in [low, high) from the oldest on; `first` is their ordinal."""
    cdef Py_ssize_t count = high - low, size, i
    cdef uint8_t labels[PAGE]
    cdef int64_t times[PAGE]
    cdef double weights[PAGE]
    cdef Span span
    cdef uint8_t flags = 0, width = 0
    window.ring.copy(<char *> window.ring.labels, <char *> labels, low, high, 1)
    if window.ring.times != NULL:
        window.ring.copy(<char *> window.ring.times, <char *> times, low, high, 8)
        span = span_of(times, count)
        if span.base or span.spread:
            flags |= HAS_TIMES
            width = 1 if span.spread < 1 << 8 else 2 if span.spread < 1 << 16 else 4
            if span.spread >> 32:
                width = 8
    if window.ring.weights != NULL:
        window.ring.copy(<char *> window.ring.weights, <char *> weights, low, high, 8)
        for i in range(count):
            if weights[i] != 1:
                flags |= HAS_WEIGHTS
                break
    size = ENVELOPE + HEAD + PyBytes_GET_SIZE(head) + 8 * count + (count + 7) // 8
    if flags & HAS_TIMES:
        size += TIMES + width * count
    if flags & HAS_WEIGHTS:
        size += 8 * count
    cdef bytes value = PyBytes_FromStringAndSize(NULL, size)
    cdef uint8_t *body = <uint8_t *> PyBytes_AS_STRING(value) + ENVELOPE
    cdef uint8_t *at = body
    cdef uint64_t ordinal = first
    cdef uint16_t events = <uint16_t> count
    memcpy(at, &ordinal, 8)
    memcpy(at + 8, &events, 2)
    at[10] = flags
    at[11] = <uint8_t> PyBytes_GET_SIZE(head)
    at += HEAD
    memcpy(at, PyBytes_AS_STRING(head), PyBytes_GET_SIZE(head))
    at += PyBytes_GET_SIZE(head)
    window.ring.copy(<char *> window.ring.scores, <char *> at, low, high, 8)
    at += 8 * count
    for i in range((count + 7) // 8):
        at[i] = 0
    for i in range(count):
        at[i >> 3] |= labels[i] << (7 - (i & 7))
    at += (count + 7) // 8
    if flags & HAS_TIMES:
        memcpy(at, &span.base, 8)
        at[8] = width
        at = put_times(at + TIMES, times, count, span.base, width)
    if flags & HAS_WEIGHTS:
        memcpy(at, weights, 8 * count)
    cdef uint32_t crc = crc_of(PyBytes_AS_STRING(key), PyBytes_GET_SIZE(key), 0)
    crc = crc_of(body, size - ENVELOPE, crc)
    body[-ENVELOPE] = VERSION
    body[1 - ENVELOPE] = KIND
    memcpy(body - 4, &crc, 4)
    return value


cdef Span span_of(const int64_t *times, Py_ssize_t count) noexcept nogil:
    cdef int64_t low = times[0], high = times[0]
    cdef Py_ssize_t i
    cdef Span span
    for i in range(1, count):
        low = min(low, times[i])
        high = max(high, times[i])
    span.base = low
    span.spread = <uint64_t> high - <uint64_t> low
    return span


cdef uint8_t *put_times(
    uint8_t *at, const int64_t *times, Py_ssize_t count, int64_t base, Py_ssize_t width
) noexcept nogil:
    cdef Py_ssize_t i
    cdef uint64_t delta
    for i in range(count):
        delta = <uint64_t> times[i] - <uint64_t> base
        memcpy(at, &delta, width)
        at += width
    return at


cdef struct Place:  # what the head of a page says
    uint64_t first
    Py_ssize_t count, scores
    uint8_t flags, width


cdef bint looked_at(bytes key, bytes value, Place *place) noexcept:
    """Check a page and read its head; False where anything is not as it should be."""
    cdef Py_ssize_t size = PyBytes_GET_SIZE(value), at
    cdef const uint8_t *text = <const uint8_t *> PyBytes_AS_STRING(value)
    cdef uint32_t crc
    cdef uint16_t count
    if size < ENVELOPE + HEAD or text[0] != VERSION or text[1] != KIND:
        return False
    memcpy(&crc, text + 2, 4)
    if crc != crc_of(
        text + ENVELOPE,
        size - ENVELOPE,
        crc_of(PyBytes_AS_STRING(key), PyBytes_GET_SIZE(key), 0),
    ):
        return False
    memcpy(&place.first, text + ENVELOPE, 8)
    memcpy(&count, text + ENVELOPE + 8, 2)
    place.count = count
    place.flags = text[ENVELOPE + 10]
    place.width = 0
    place.scores = at = ENVELOPE + HEAD + text[ENVELOPE + 11]
    at += 8 * place.count + (place.count + 7) // 8
    if place.flags & HAS_TIMES:
        if at + TIMES > size:
            return False
        place.width = text[at + 8]
        if place.width not in (1, 2, 4, 8):
            return False
        at += TIMES + place.width * place.count
    if place.flags & HAS_WEIGHTS:
        at += 8 * place.count
    return place.count > 0 and at == size


def unpack(list records):
    """Unpack the pages of one window, in order, into columns; O(events).

    Parameters
    ----------
    records
        Key and value of each page; one at least.

    Returns
    -------
    first, columns, head
        Ordinal of the first event, the events, and the head of the newest page. None where a page is
        damaged, or one is missing.
    """
    cdef Place place
    cdef Py_ssize_t total = 0, i, done = 0
    cdef uint8_t flags = 0
    cdef uint64_t first = 0
    cdef bytes key, value, head = b""
    for key, value in records:
        if key is None or value is None or not looked_at(key, value, &place):
            return None
        if total and place.first != first + total:
            return None
        if total == 0:
            first = place.first
        total += place.count
        flags |= place.flags
    scores = np.empty(total)
    labels = np.empty(total, np.uint8)
    times = np.zeros(total, np.int64) if flags & HAS_TIMES else None
    weights = np.ones(total) if flags & HAS_WEIGHTS else None
    cdef double *score = <double *> pointer_of(scores)
    cdef uint8_t *label = <uint8_t *> pointer_of(labels)
    cdef int64_t *time = NULL
    cdef double *weight = NULL
    if times is not None:
        time = <int64_t *> pointer_of(times)
    if weights is not None:
        weight = <double *> pointer_of(weights)
    cdef const uint8_t *at
    cdef int64_t base
    cdef uint64_t delta
    for key, value in records:
        looked_at(key, value, &place)
        at = <const uint8_t *> PyBytes_AS_STRING(value) + place.scores
        head = value[ENVELOPE + HEAD : place.scores]
        memcpy(score + done, at, 8 * place.count)
        at += 8 * place.count
        for i in range(place.count):
            label[done + i] = at[i >> 3] >> (7 - (i & 7)) & 1
        at += (place.count + 7) // 8
        if place.flags & HAS_TIMES:
            memcpy(&base, at, 8)
            at += TIMES
            for i in range(place.count):
                delta = 0
                memcpy(&delta, at, place.width)
                time[done + i] = <int64_t> (<uint64_t> base + delta)
                at += place.width
        if place.flags & HAS_WEIGHTS:
            memcpy(weight + done, at, 8 * place.count)
        done += place.count
    return first, Columns(scores, labels, weights, times), head
