"""Records in a row without an object for each: where their keys and values stand in memory."""

from cpython.bytes cimport PyBytes_AS_STRING, PyBytes_GET_SIZE, PyBytes_FromStringAndSize
from libc.stdint cimport INT32_MAX, int32_t, int64_t, uint8_t
from libc.stdlib cimport free, malloc, realloc
from libc.string cimport memchr, memcpy

from worker.events.record import Taken

cdef enum:
    FEW = 64


cdef class Store:
    """Entries, and what keeps the memory alive that they point into."""

    def __cinit__(self):
        self.owners = []

    def __dealloc__(self):
        free(self.entries)

    cdef Entry *add(self) except NULL:
        """Give a new entry, to be filled; it moves with the next."""
        cdef Py_ssize_t room
        cdef void *moved
        if self.size == self.room:
            room = 2 * self.room + FEW
            moved = realloc(self.entries, room * sizeof(Entry))
            if moved == NULL:
                raise MemoryError
            self.entries = <Entry *> moved
            self.room = room
        self.size += 1
        return self.entries + self.size - 1


cdef class Block:
    """A sequence of records; a slice of it copies nothing. Made by the functions here."""

    def __init__(self):
        raise TypeError("blocks are made by block_of_lines, block_of_records and the transport")

    def __len__(self):
        return self.size

    def __getitem__(self, at):
        cdef Py_ssize_t place, start, stop, step
        cdef Block part
        if isinstance(at, slice):
            start, stop, step = at.indices(self.size)
            if step != 1:
                raise ValueError("records of a block stand in a row: a slice has no step")
            part = Block.__new__(Block)
            part.store = self.store
            part.start = self.start + start
            part.size = max(stop - start, 0)
            return part
        place = at
        if place < 0:
            place += self.size
        if not 0 <= place < self.size:
            raise IndexError(at)
        if self.store.records is not None:
            return self.store.records[self.start + place]
        return taken(self.entries() + place)


cdef object taken(const Entry *entry):
    key = value = None
    if entry.key_size >= 0:
        key = PyBytes_FromStringAndSize(<const char *> entry.key, entry.key_size)
    if entry.value_size >= 0:
        value = PyBytes_FromStringAndSize(<const char *> entry.value, entry.value_size)
    return Taken(entry.offset, entry.timestamp, key, value)


cdef Block block_of(Store store):
    """Make a block of all of a store's entries."""
    cdef Block block = Block.__new__(Block)
    block.store = store
    block.size = store.size
    return block


def block_of_lines(bytes text, int64_t first, bytes key, int64_t timestamp):
    """Take the lines of a text for values.

    Parameters
    ----------
    text
        Lines with an end between each and the next.
    first
        Offset of the first one.
    key, timestamp
        Of each of them.
    """
    cdef Store store = Store()
    cdef const uint8_t *at = text
    cdef const uint8_t *end = at + PyBytes_GET_SIZE(text)
    cdef const uint8_t *line
    cdef Entry *entry
    store.owners.append(text)
    store.owners.append(key)
    while True:
        line = <const uint8_t *> memchr(at, 10, end - at)
        if line == NULL:
            line = end
        if line - at > INT32_MAX:
            raise ValueError("a line has more than 2 GiB")
        entry = store.add()
        entry.offset = first
        entry.timestamp = timestamp
        entry.key_size = -1
        if key is not None:
            entry.key = <const uint8_t *> PyBytes_AS_STRING(key)
            entry.key_size = PyBytes_GET_SIZE(key)
        entry.value = at
        entry.value_size = line - at
        first += 1
        if line == end:
            return block_of(store)
        at = line + 1


def count_lines(bytes text):
    """Return how many lines a text has; -1 where one begins with a blank or a control character."""
    cdef const uint8_t *at = text
    cdef const uint8_t *end = at + PyBytes_GET_SIZE(text)
    cdef Py_ssize_t count = 0
    while True:
        if at == end or at[0] <= 32:
            return -1
        count += 1
        at = <const uint8_t *> memchr(at, 10, end - at)
        if at == NULL:
            return count
        at += 1


def block_of_records(list records):
    """Take records that are objects; each comes out of the block again as it is."""
    cdef Store store = Store()
    cdef Entry *entry
    store.records = records
    for record in records:
        key, value, timestamp = record.key, record.value, record.timestamp
        store.owners.append(key)
        store.owners.append(value)
        entry = store.add()
        entry.offset = record.offset
        entry.timestamp = -1
        entry.key_size = entry.value_size = -1
        if timestamp is not None:
            # What does not fit into 64 bits is no time in this or any year to come.
            entry.timestamp = max(min(timestamp, (1 << 63) - 1), -1)
        if type(key) is bytes and PyBytes_GET_SIZE(key) <= INT32_MAX:
            entry.key = <const uint8_t *> PyBytes_AS_STRING(key)
            entry.key_size = PyBytes_GET_SIZE(key)
        if type(value) is bytes and PyBytes_GET_SIZE(value) <= INT32_MAX:
            entry.value = <const uint8_t *> PyBytes_AS_STRING(value)
            entry.value_size = PyBytes_GET_SIZE(value)
    return block_of(store)


def block_of_blocks(list blocks):
    """Put blocks into one, their records behind each other. O(n)."""
    cdef Store store = Store()
    cdef Block block
    cdef Py_ssize_t size = 0
    for block in blocks:
        size += block.size
    if len(blocks) == 1:
        return blocks[0]
    if size:
        store.entries = <Entry *> malloc(size * sizeof(Entry))
        if store.entries == NULL:
            raise MemoryError
    store.room = size
    for block in blocks:
        memcpy(store.entries + store.size, block.entries(), block.size * sizeof(Entry))
        store.size += block.size
        store.owners.append(block.store.owners)
    return block_of(store)
