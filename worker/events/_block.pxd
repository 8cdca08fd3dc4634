# Records in a row without an object for each.
from libc.stdint cimport int32_t, int64_t, uint8_t

cdef struct Entry:
    int64_t offset
    int64_t timestamp  # ms; -1 without one
    const uint8_t *key
    const uint8_t *value
    int32_t key_size  # -1: none
    int32_t value_size  # -1: none

cdef class Store:
    cdef Entry *entries
    cdef Py_ssize_t size, room
    cdef list owners  # of the memory that entries point into
    cdef list records  # as they came, None where they are made

    cdef Entry *add(self) except NULL

cdef class Block:
    cdef Store store
    cdef Py_ssize_t start, size

    cdef inline Entry *entries(self) noexcept nogil:
        return self.store.entries + self.start

cdef Block block_of(Store store)
