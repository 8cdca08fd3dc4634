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


cdef inline uint32_t take(Pool *pool) noexcept nogil:
    """Number of a node never used; the pool has one."""
    pool.used += 1
    return pool.used - 1


cdef inline void put_back(Pool *pool, uint32_t node) noexcept nogil:
    """Make a node the first of the free ones; the caller has linked it to the one before."""
    pool.free = node
    pool.free_size += 1


cdef inline uint32_t take_back(Pool *pool, uint32_t following) noexcept nogil:
    """Number of the first free node; `following` is the one that it is linked to."""
    cdef uint32_t node = pool.free
    pool.free = following
    pool.free_size -= 1
    return node


cdef void empty(Pool *pool) noexcept nogil
cdef bint reserve(
    Pool *pool, uint32_t more, void **block, size_t width, void **beside, size_t beside_width
) noexcept nogil
