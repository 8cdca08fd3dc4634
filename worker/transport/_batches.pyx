"""Record batches as a fetch brings them (Kafka's message format 2), taken apart without copies.

What a batch means (aborted, control, already seen) is decided by ``fetch``; here are its bytes alone.
The format: KIP-98, and ``DefaultRecordBatch`` and ``DefaultRecord`` of Apache Kafka.
"""

from cpython.bytes cimport PyBytes_AS_STRING, PyBytes_GET_SIZE
from libc.stdint cimport INT32_MAX, INT64_MAX, int16_t, int32_t, int64_t, uint8_t, uint32_t, uint64_t

from worker.events._block cimport Block, Entry, Store, block_of

from aiokafka.errors import CorruptRecordException
from aiokafka.record.util import calc_crc32c

cdef enum:
    # Where the parts of a batch begin. Older formats have length and magic at the same places.
    LENGTH = 8
    AFTER_LENGTH = 12
    LEADER_EPOCH = 12
    MAGIC = 16
    CRC = 17
    ATTRIBUTES = 21
    LAST_DELTA = 23
    FIRST_TIMESTAMP = 27
    MAX_TIMESTAMP = 35
    PRODUCER = 43
    COUNT = 57
    RECORDS = 61

    CODEC = 0x07
    APPEND_TIME = 0x08
    TRANSACTIONAL = 0x10
    CONTROL = 0x20


cdef uint64_t big_endian(const uint8_t *at, int width) noexcept nogil:
    cdef uint64_t number = 0
    cdef int i
    for i in range(width):
        number = number << 8 | at[i]
    return number


cdef class Batches:
    """The batches of a response, one after the other; a last one that was cut off is none.

    Parameters
    ----------
    raw
        What the broker sent.
    """

    cdef bytes data
    cdef Py_ssize_t at

    def __cinit__(self, raw):
        self.data = bytes(raw)

    cdef Py_ssize_t end(self) noexcept:
        """Where the batch at hand ends; -1 when it is not there as a whole."""
        cdef const uint8_t *start = <const uint8_t *> PyBytes_AS_STRING(self.data) + self.at
        cdef Py_ssize_t left = PyBytes_GET_SIZE(self.data) - self.at, length
        if left < AFTER_LENGTH:
            return -1
        # A length below 0 is that of an empty batch, which is refused when it is taken.
        length = max(<int32_t> big_endian(start + LENGTH, 4), 0)
        return self.at + AFTER_LENGTH + length if length <= left - AFTER_LENGTH else -1

    def size_in_bytes(self):
        """Return how much the broker sent."""
        return len(self.data)

    def has_next(self):
        """Tell whether there is another whole batch."""
        return self.end() >= 0

    def next_batch(self):
        """Return the next batch, None behind the last one.

        Raises
        ------
        CorruptRecordException
            When it is too short for one.
        """
        cdef Py_ssize_t start = self.at, end = self.end()
        if end < 0:
            return None
        self.at = end
        return batch_of(self.data, start, end)


cdef class RecordBatch:
    """A batch: its header, and where its records are."""

    cdef bytes data
    cdef const uint8_t *start
    cdef Py_ssize_t first, last
    cdef int16_t attributes
    cdef readonly int magic
    cdef readonly int32_t leader_epoch
    cdef readonly int64_t base_offset, next_offset, producer_id

    @property
    def is_transactional(self):
        """Whether it belongs to a transaction."""
        return self.attributes & TRANSACTIONAL != 0

    @property
    def is_control_batch(self):
        """Whether it holds the end of a transaction and no records of anybody's."""
        return self.attributes & CONTROL != 0

    @property
    def compression_type(self):
        """Number of the codec; 0 without one."""
        return self.attributes & CODEC

    @property
    def raw(self):
        """The whole batch."""
        return memoryview(self.data)[self.first : self.last]

    @property
    def payload(self):
        """Its records, as they were sent."""
        return memoryview(self.data)[self.first + RECORDS : self.last]

    def validate_crc(self):
        """Tell whether the batch is as its producer made it."""
        crc = <uint32_t> big_endian(self.start + CRC, 4)
        return crc == calc_crc32c(memoryview(self.data)[self.first + ATTRIBUTES : self.last])

    def records(self, bytes payload, int64_t first):
        """Take the batch apart.

        Parameters
        ----------
        payload
            Its records decompressed, None where they are not compressed.
        first
            Records with smaller offsets are left out.

        Raises
        ------
        CorruptRecordException
            When they do not fit together.
        """
        cdef Store store = Store()
        cdef const uint8_t *at = self.start + RECORDS
        cdef const uint8_t *end = self.start + (self.last - self.first)
        cdef int32_t count = <int32_t> big_endian(self.start + COUNT, 4), i
        cdef bint appended = self.attributes & APPEND_TIME != 0
        cdef uint64_t begun = big_endian(
            self.start + (MAX_TIMESTAMP if appended else FIRST_TIMESTAMP), 8
        )
        cdef Entry entry
        cdef Entry *added
        store.owners.append(self.data)
        if payload is not None:
            store.owners.append(payload)
            at = <const uint8_t *> PyBytes_AS_STRING(payload)
            end = at + PyBytes_GET_SIZE(payload)
        for i in range(count):
            at = record(at, end, &entry)
            if at == NULL:
                raise CorruptRecordException(f"its record {i} is none")
            entry.offset = <int64_t> (<uint64_t> self.base_offset + <uint64_t> entry.offset)
            if entry.offset == INT64_MAX:
                raise CorruptRecordException(f"its record {i} has no offset that another may follow")
            if appended:
                entry.timestamp = <int64_t> begun
            else:
                entry.timestamp = <int64_t> (begun + <uint64_t> entry.timestamp)
            if entry.offset < first:
                continue
            first = entry.offset + 1
            added = store.add()
            added[0] = entry
        if at != end:
            raise CorruptRecordException(f"{end - at} bytes come behind its records")
        return block_of(store)


cdef RecordBatch batch_of(bytes data, Py_ssize_t start, Py_ssize_t end):
    cdef RecordBatch batch = RecordBatch.__new__(RecordBatch)
    cdef const uint8_t *header = <const uint8_t *> PyBytes_AS_STRING(data) + start
    if end - start <= MAGIC:
        raise CorruptRecordException(f"it has {end - start} bytes")
    batch.data = data
    batch.start = header
    batch.first = start
    batch.last = end
    batch.magic = header[MAGIC]
    batch.leader_epoch = -1
    batch.base_offset = <int64_t> big_endian(header, 8)
    if batch.magic < 2:
        return batch
    if end - start < RECORDS:
        raise CorruptRecordException(f"it has {end - start} bytes")
    batch.leader_epoch = <int32_t> big_endian(header + LEADER_EPOCH, 4)
    batch.attributes = <int16_t> big_endian(header + ATTRIBUTES, 2)
    batch.producer_id = <int64_t> big_endian(header + PRODUCER, 8)
    batch.next_offset = <int64_t> (
        <uint64_t> batch.base_offset
        + <uint64_t> <int64_t> <int32_t> big_endian(header + LAST_DELTA, 4)
        + 1
    )
    return batch


cdef inline const uint8_t *varint(
    const uint8_t *at, const uint8_t *end, int64_t *number
) noexcept nogil:
    """Read a number of variable length, zigzag; NULL when it is not there."""
    cdef uint64_t value = 0
    cdef int shift = 0
    while at < end and shift < 64:
        value |= (<uint64_t> (at[0] & 0x7F)) << shift
        if not at[0] & 0x80:
            number[0] = <int64_t> (value >> 1) ^ -<int64_t> (value & 1)
            return at + 1
        at += 1
        shift += 7
    return NULL


cdef inline const uint8_t *piece(
    const uint8_t *at, const uint8_t *end, const uint8_t **data, int32_t *size
) noexcept nogil:
    """Pass over bytes with their length before them; a length of -1 says that there are none."""
    cdef int64_t length
    at = varint(at, end, &length)
    if at == NULL or length > end - at or length > INT32_MAX:
        return NULL
    data[0] = at
    size[0] = -1
    if length < 0:
        return at
    size[0] = <int32_t> length
    return at + length


cdef const uint8_t *record(
    const uint8_t *at, const uint8_t *end, Entry *entry
) noexcept nogil:
    """Read a record, its offset and timestamp as differences; NULL where it is none."""
    cdef int64_t length, headers
    cdef const uint8_t *data
    cdef int32_t size
    at = varint(at, end, &length)
    if at == NULL or not 1 <= length <= end - at:
        return NULL
    end = at + length
    at = varint(at + 1, end, &entry.timestamp)  # behind a byte of attributes, unused
    if at != NULL:
        at = varint(at, end, &entry.offset)
    if at != NULL:
        at = piece(at, end, &entry.key, &entry.key_size)
    if at != NULL:
        at = piece(at, end, &entry.value, &entry.value_size)
    if at != NULL:
        at = varint(at, end, &headers)
    if at == NULL or headers < 0:
        return NULL
    while headers:
        at = piece(at, end, &data, &size)
        if at == NULL or size < 0:
            return NULL
        at = piece(at, end, &data, &size)
        if at == NULL:
            return NULL
        headers -= 1
    return at if at == end else NULL
