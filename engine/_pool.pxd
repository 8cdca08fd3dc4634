# Nodes as numbers into a growing block of memory; free ones are linked through their own bytes.
from libc.stdint cimport uint32_t

cdef extern from *:
    """
    #define ROC_NONE 0xFFFFFFFFu
    """
    const uint32_t NONE "ROC_NONE"  # no node

cdef struct Pool:
    uint32_t capacity, used
    uint32_t free, free_size  # the first of the free nodes, and how many they are


cdef inline bint has_room(const Pool *pool, uint32_t more) noexcept nogil:
    return pool.free_size + pool.capacity - pool.used >= more


cdef inline uint32_t take(Pool *pool) noexcept nogil:
    """Number of a node never used; the pool has one."""
    pool.used += 1
    return pool.used - 1


cdef void empty(Pool *pool) noexcept nogil
cdef uint32_t larger(const Pool *pool, uint32_t more) noexcept nogil
cdef bint grow(void **block, size_t used, size_t capacity, size_t width) noexcept nogil
