"""One record taken apart, as ``reading`` does, where it looks like nearly all records.

A JSON object with a number for a score, 0 or 1 (or a text of the `labels` map) for a label, and key,
time and weight where the settings say; or all of these in arrays. Anything odd in the least, bad or
merely rare, is left to ``reading``, which has the rules; what is taken here, the rules take with the
same outcome.
"""

from libc.stdint cimport int64_t, uint8_t, uint64_t
from libc.stdlib cimport free, realloc
from libc.string cimport memcmp

from worker.events._block cimport Entry
from worker.events._decimal cimport nearest
from worker.events._json cimport Number, anything, blank, number, text

from config.event import KEY_BYTES
from engine.events import HEAVIEST, LIGHTEST
from worker.events.document import VALUE_LIMIT
from worker.events.fields import TIME_MAX
from worker.events.reading import HEARTBEAT

MOST_TEXTS = CLASSES
MOST_PARTS = DEPTH

cdef int64_t LATEST = TIME_MAX
cdef double LEAST_WEIGHT = LIGHTEST, MOST_WEIGHT = HEAVIEST
cdef Py_ssize_t VALUE_BYTES = VALUE_LIMIT
cdef Py_ssize_t NAME_BYTES = KEY_BYTES


cdef class Reader:
    """One way to read records; what the last one said is in here.

    Parameters
    ----------
    paths
        Of score, label, key, time and weight; None for key and time means the record's own, for
        weight that each is 1.
    classes
        Texts that are labels, and the class of each.
    factor, divisor
        From the unit of times to ms.
    max_ahead
        How far (ms) a time may lie past its record's.
    """

    def __cinit__(self, tuple paths, dict classes, factor, divisor, max_ahead):
        cdef int role
        self.kept = []
        for role, path in enumerate((*paths, (HEARTBEAT,))):
            if path is not None and len(path) > DEPTH:
                raise ValueError(f"a path of {len(path)} parts; {DEPTH} at the most")
            for part in path or ():
                self.paths[role][self.lengths[role]] = self.name_of(part)
                self.lengths[role] += 1
        if len(classes) > CLASSES:
            raise ValueError(f"{len(classes)} texts of labels; {CLASSES} at the most")
        for name, known in classes.items():
            self.texts[self.texts_count] = self.name_of(name)
            self.known[self.texts_count] = known
            self.texts_count += 1
        self.own_key = paths[KEY] is None
        self.own_time = paths[TIME] is None
        self.factor = factor
        self.divisor = divisor
        self.max_ahead = min(max_ahead, LATEST)
        self.most = LATEST * divisor // factor

    def __dealloc__(self):
        cdef int role
        for role in range(ROLES):
            free(self.arrays[role].data)

    cdef Name name_of(self, str name):
        cdef Name found
        text = name.encode("utf-8", "surrogatepass")
        self.kept.append(text)
        found.text = text
        found.size = len(text)
        return found

    cdef Outcome read(self, const Entry *entry) noexcept nogil:
        """Read one record."""
        cdef const uint8_t *at = entry.value
        cdef const uint8_t *end
        cdef int role, all_roles = 0
        if not 0 < entry.value_size <= VALUE_BYTES:
            return ODD
        end = at + entry.value_size  # a record without a value has no address to count from
        for role in range(ROLES):
            self.forms[role] = ABSENT
            if self.lengths[role]:
                all_roles |= 1 << role
        at = blank(at, end)
        if at >= end or at[0] != c"{":
            return ODD
        at = self.members(at + 1, end, all_roles, 0)
        if at == NULL or blank(at, end) != end:
            return ODD
        return self.judge(entry)

    cdef const uint8_t *members(
        self, const uint8_t *at, const uint8_t *end, int among, int depth
    ) noexcept nogil:
        """Read an object from behind its brace; `among` has a bit for each field it may lead to."""
        cdef const uint8_t *name
        cdef bint escaped
        at = blank(at, end)
        if at < end and at[0] == c"}":
            return at + 1
        while at < end and at[0] == c'"':
            name = at + 1
            at = text(name, end, &escaped)
            if at == NULL or escaped:
                return NULL
            at = self.member(name, at, end, among, depth)
            if at == NULL:
                return NULL
            at = blank(at, end)
            if at >= end:
                return NULL
            if at[0] == c"}":
                return at + 1
            if at[0] != c",":
                return NULL
            at = blank(at + 1, end)
        return NULL

    cdef const uint8_t *member(
        self,
        const uint8_t *name,
        const uint8_t *quote,
        const uint8_t *end,
        int among,
        int depth,
    ) noexcept nogil:
        """Read what a name stands for, from the quote behind the name on."""
        cdef const uint8_t *at = blank(quote + 1, end)
        cdef Py_ssize_t size = quote - name
        cdef int role, inner = 0
        cdef const Name *part
        if at >= end or at[0] != c":":
            return NULL
        at = blank(at + 1, end)
        for role in range(ROLES):
            part = &self.paths[role][depth]
            if among >> role & 1 and part.size == size and memcmp(part.text, name, size) == 0:
                if self.lengths[role] == depth + 1:
                    return self.value(role, at, end)
                inner |= 1 << role
        if not inner:
            return anything(at, end)
        # Of one name twice the last counts, with all that is in it.
        for role in range(ROLES):
            if inner >> role & 1:
                self.forms[role] = ABSENT
        if at < end and at[0] == c"{":
            return self.members(at + 1, end, inner, depth + 1)
        return anything(at, end)

    cdef const uint8_t *value(
        self, int role, const uint8_t *at, const uint8_t *end
    ) noexcept nogil:
        """Read the value of a field; NULL where it is odd."""
        cdef bint escaped
        cdef const uint8_t *start = at
        if at >= end or role == BEAT:
            return NULL
        if at[0] == c"[" and role != KEY:
            return self.array(role, at + 1, end)
        self.forms[role] = ONE
        if role == KEY or (role == LABEL and at[0] == c'"'):
            if at[0] != c'"':
                return NULL
            start = at + 1
            at = text(start, end, &escaped)
            if at == NULL or escaped:
                return NULL
            if role == LABEL:
                return at + 1 if self.class_of(start, at - start) else NULL
            self.key = start
            self.key_size = at - start
            return at + 1
        if role == LABEL and at[0] == c"n":
            self.forms[role] = NOTHING
            return anything(at, end)
        if role == LABEL:
            return self.one_label(at, end, &self.label)
        if role == TIME:
            return self.one_time(at, end, &self.time)
        return one_number(at, end, &self.score if role == SCORE else &self.weight)

    cdef bint class_of(self, const uint8_t *label, Py_ssize_t size) noexcept nogil:
        """Find the class of a text."""
        cdef int i
        for i in range(self.texts_count):
            if self.texts[i].size == size and memcmp(self.texts[i].text, label, size) == 0:
                self.label = self.known[i]
                return True
        return False

    cdef const uint8_t *one_label(
        self, const uint8_t *at, const uint8_t *end, uint8_t *label
    ) noexcept nogil:
        """Read 0 or 1, written so."""
        if at >= end or not 48 <= at[0] <= 49:
            return NULL
        label[0] = at[0] - 48
        # 1.0 and 1e0 mean the same, 10 does not: what goes on is odd.
        at += 1
        if at < end and (at[0] == c"." or at[0] == c"e" or at[0] == c"E" or 48 <= at[0] <= 57):
            return NULL
        return at

    cdef const uint8_t *one_time(
        self, const uint8_t *at, const uint8_t *end, int64_t *time
    ) noexcept nogil:
        """Read a time that lies before the year 10000, into ms."""
        cdef Number found
        at = number(at, end, &found)
        if at == NULL or found.negative or not found.whole or found.exponent:
            return NULL
        if found.digits > <uint64_t> self.most:
            return NULL
        time[0] = <int64_t> found.digits * self.factor // self.divisor
        return at

    cdef const uint8_t *array(
        self, int role, const uint8_t *at, const uint8_t *end
    ) noexcept nogil:
        """Read an array of at least one element, from behind its bracket."""
        cdef Array *array = &self.arrays[role]
        cdef Py_ssize_t size = 0
        self.forms[role] = MANY
        while True:
            if size == array.room and not self.grow(array):
                return NULL  # and let the rules run out of memory
            at = blank(at, end)
            if role == LABEL:
                at = self.one_label(at, end, <uint8_t *> array.data + size)
            elif role == TIME:
                at = self.one_time(at, end, <int64_t *> array.data + size)
            else:
                at = one_number(at, end, <double *> array.data + size)
            if at == NULL:
                return NULL
            size += 1
            at = blank(at, end)
            if at >= end:
                return NULL
            if at[0] == c"]":
                array.size = size
                return at + 1
            if at[0] != c",":
                return NULL
            at += 1

    cdef bint grow(self, Array *array) noexcept nogil:
        cdef Py_ssize_t room = 2 * array.room + 64
        cdef void *moved = realloc(array.data, room * 8)
        if moved == NULL:
            return False
        array.data = <char *> moved
        array.room = room
        return True

    cdef Outcome judge(self, const Entry *entry) noexcept nogil:
        """Hold what was read against the rules; ODD unless all of them are kept."""
        cdef int64_t stamp = entry.timestamp, latest = LATEST
        cdef Form score = self.forms[SCORE], label = self.forms[LABEL]
        cdef Py_ssize_t size, i
        cdef double weight
        if score == ONE and (label == ABSENT or label == NOTHING):
            return UNLABELLED
        if (score != ONE and score != MANY) or label != score:
            return ODD
        size = self.arrays[SCORE].size
        if score == MANY and self.arrays[LABEL].size != size:
            return ODD
        if self.own_key:
            self.key = entry.key
            self.key_size = entry.key_size
        elif self.forms[KEY] != ONE:
            return ODD
        if not 0 < self.key_size <= NAME_BYTES:
            return ODD
        if self.own_time:
            if stamp < 0:
                return ODD
            self.time = stamp
        else:
            if stamp >= 0:
                latest = LATEST if stamp > LATEST - self.max_ahead else stamp + self.max_ahead
            if not self.fits(TIME, score, size):
                return ODD
            if self.forms[TIME] == ONE and self.time > latest:
                return ODD
            if self.forms[TIME] == MANY:
                for i in range(size):
                    if (<int64_t *> self.arrays[TIME].data)[i] > latest:
                        return ODD
        if self.forms[WEIGHT] == ABSENT:
            self.weight = 1
        elif not self.fits(WEIGHT, score, size):
            return ODD
        elif self.forms[WEIGHT] == ONE and not LEAST_WEIGHT <= self.weight <= MOST_WEIGHT:
            return ODD
        elif self.forms[WEIGHT] == MANY:
            for i in range(size):
                weight = (<double *> self.arrays[WEIGHT].data)[i]
                if not LEAST_WEIGHT <= weight <= MOST_WEIGHT:
                    return ODD
        return EVENT if score == ONE else COLUMNS

    cdef bint fits(self, int role, Form score, Py_ssize_t size) noexcept nogil:
        """Tell whether a field is one value, or an array as long as the scores'."""
        if self.forms[role] == ONE:
            return True
        return self.forms[role] == MANY == score and self.arrays[role].size == size


cdef const uint8_t *one_number(
    const uint8_t *at, const uint8_t *end, double *value
) noexcept nogil:
    """Read a finite number as the double next to it."""
    cdef Number found
    at = number(at, end, &found)
    if at == NULL or not nearest(found.digits, found.exponent, found.cut, value):
        return NULL
    if found.negative:
        # The integer -0 has no sign, the fraction has.
        if found.whole and found.digits == 0:
            return NULL
        value[0] = -value[0]
    return at
