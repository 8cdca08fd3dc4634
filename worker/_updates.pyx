"""Updates put together below Python: what `worker.updates` does row by row, with the same bytes."""

from cpython.bytes cimport PyBytes_AS_STRING, PyBytes_FromStringAndSize, PyBytes_GET_SIZE
from cpython.mem cimport PyMem_Free, PyMem_Malloc
from libc.stdint cimport int64_t
from libc.stdio cimport snprintf
from libc.string cimport memcmp, memcpy

cdef enum:  # places in an update, in their order; the metrics stand before REASON
    NAME
    SEQ
    TIME
    EVENTS
    FULL
    START
    END
    POSITIVES
    NEGATIVES
    FOUND

cdef enum:  # places behind the metrics, and those that no column fills
    BEHIND = 4
    OTHERS = 5

cdef struct Text:
    const char *data
    Py_ssize_t size


cdef Text text_of(bytes value) noexcept:
    cdef Text found
    found.data = PyBytes_AS_STRING(value)
    found.size = PyBytes_GET_SIZE(value)
    return found


cdef inline Text element(const char **at) noexcept nogil:
    """Give a column's next number, and go behind what follows it."""
    cdef Text found
    cdef const char *end = at[0]
    found.data = end
    while end[0] != c"," and end[0] != c"]":
        end += 1
    found.size = end - found.data
    at[0] = end + 1
    return found


cdef inline bint is_zero(Text number) noexcept nogil:
    return number.size == 1 and number.data[0] == c"0"


def fill(tuple pieces, bytes text, Py_ssize_t count, bytes name, first, bytes size, tuple notes):
    """Fill the places of updates that follow each other; O(bytes).

    Parameters
    ----------
    pieces
        What stands before, between and behind the places.
    text
        JSON: an array of arrays of numbers and nulls without blanks, `count` in each. Times, offsets,
        indexes, events, starts, ends, positives, negatives, and every metric.
    name
        The key as JSON.
    first
        Number of the first update, or None.
    size
        Of the window, in digits.
    notes
        That of the first update and that of the others, as JSON.

    Returns
    -------
    list of bytes
        An update each.
    """
    cdef Py_ssize_t places = len(pieces) - 1, columns = places - OTHERS, row, i, total, fixed = 0
    cdef Py_ssize_t reason = places - BEHIND
    cdef Text full = text_of(size)
    cdef Text truth = text_of(b"true"), untruth = text_of(b"false"), null = text_of(b"null")
    cdef Text undefined = text_of(b'"undefined"'), one_class = text_of(b'"one_class"')
    cdef const char *at = PyBytes_AS_STRING(text) + 2  # behind the brackets
    cdef char[24] digits
    cdef char *target
    cdef bytes update
    cdef list found = []
    cdef Text *between = <Text *> PyMem_Malloc((2 * places + 1) * sizeof(Text))
    cdef const char **tops = <const char **> PyMem_Malloc(columns * sizeof(char *))
    cdef Text *filling = between + places + 1
    cdef Text some
    try:
        if between == NULL or tops == NULL:
            raise MemoryError
        for i in range(places + 1):
            between[i] = text_of(pieces[i])
            fixed += between[i].size
        for i in range(columns):
            if i:
                while at[0] != c"]":
                    at += 1
                at += 3  # to behind the bracket that opens the next
            tops[i] = at
        filling[NAME] = text_of(name)
        filling[SEQ] = null
        for row in range(count):
            if first is not None:
                filling[SEQ].data = digits
                filling[SEQ].size = snprintf(
                    digits, sizeof(digits), b"%lld", <long long> (<int64_t> first + row)
                )
            filling[TIME] = element(tops)
            filling[places - 2] = element(tops + 1)
            filling[places - 1] = element(tops + 2)
            filling[EVENTS] = some = element(tops + 3)
            filling[FULL] = (
                truth
                if some.size == full.size and memcmp(some.data, full.data, full.size) == 0
                else untruth
            )
            filling[reason] = null
            for i in range(START, reason):
                filling[i] = element(tops + i - START + 4)
            for i in range(FOUND, reason):
                if filling[i].data[0] == c"n":
                    filling[reason] = undefined
                    if is_zero(filling[POSITIVES]) or is_zero(filling[NEGATIVES]):
                        filling[reason] = one_class
                    break
            filling[reason + 1] = text_of(notes[row > 0])
            total = fixed
            for i in range(places):
                total += filling[i].size
            update = PyBytes_FromStringAndSize(NULL, total)
            target = PyBytes_AS_STRING(update)
            for i in range(places):
                memcpy(target, between[i].data, between[i].size)
                target += between[i].size
                memcpy(target, filling[i].data, filling[i].size)
                target += filling[i].size
            memcpy(target, between[places].data, between[places].size)
            found.append(update)
    finally:
        PyMem_Free(between)
        PyMem_Free(tops)
    return found


cdef int64_t number_before(const char **at, const char *low) except -1:
    """Read the digits that end before a place, and go to before them."""
    cdef const char *end = at[0]
    cdef int64_t found = 0, unit = 1
    while end > low and c"0" <= end[-1] <= c"9":
        end -= 1
        found += unit * (end[0] - c"0")
        unit *= 10
    if end == at[0]:
        raise ValueError("an update does not end as updates do")
    at[0] = end
    return found


def places(list values):
    """Return offset and index of each update's source, which stand at its end: int64, in turn.

    Raises
    ------
    ValueError
        For what is no update.
    """
    cdef Py_ssize_t count = len(values), i, size
    cdef bytes value, found = PyBytes_FromStringAndSize(NULL, 2 * count * sizeof(int64_t))
    cdef int64_t *target = <int64_t *> PyBytes_AS_STRING(found)
    cdef const char *low
    cdef const char *at
    for i in range(count):
        value = values[i]
        low = PyBytes_AS_STRING(value)
        at = low + max(PyBytes_GET_SIZE(value) - 2, 0)  # before the brackets
        target[2 * i + 1] = number_before(&at, low)
        at = max(at - 9, low)  # ,"index":
        target[2 * i] = number_before(&at, low)
    return found
