// Preloaded by tests/engine/test_starved.py: allocations that fail when they are told to.
#include <errno.h>
#include <stdlib.h>

void *__libc_malloc(size_t size);
void *__libc_calloc(size_t count, size_t size);
void *__libc_realloc(void *memory, size_t size);
void *__libc_memalign(size_t alignment, size_t size);

static long left = -1;  // how many succeed before one fails; negative: all do
static int lasting, failed;

// After `count` more allocations one fails or, `lasting`, all do.
void starve(long count, int lasts) {
    left = count;
    lasting = lasts;
    failed = 0;
}

// Let allocations succeed again; whether any failed.
int feed(void) {
    left = -1;
    return failed;
}

static int refused(void) {
    if (left < 0 || left-- > 0) return 0;
    failed = 1;
    if (lasting) left = 0;
    errno = ENOMEM;
    return 1;
}

void *malloc(size_t size) { return refused() ? NULL : __libc_malloc(size); }
void *calloc(size_t count, size_t size) { return refused() ? NULL : __libc_calloc(count, size); }
void *realloc(void *memory, size_t size) {
    return refused() ? NULL : __libc_realloc(memory, size);
}
void *aligned_alloc(size_t alignment, size_t size) {
    return refused() ? NULL : __libc_memalign(alignment, size);
}
