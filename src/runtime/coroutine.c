/* Coroutines; the contract is in coroutine.h. */
#include "runtime/coroutine.h"

#include <stdint.h>
#include <sys/mman.h>
#include <ucontext.h>

#include "base/error.h"
#include "base/mem.h"

#if defined(__SANITIZE_ADDRESS__)
#define RBT_ASAN 1
#elif defined(__has_feature)
#if __has_feature(address_sanitizer)
#define RBT_ASAN 1
#endif
#endif
#if defined(__SANITIZE_THREAD__)
#define RBT_TSAN 1
#elif defined(__has_feature)
#if __has_feature(thread_sanitizer)
#define RBT_TSAN 1
#endif
#endif

#ifdef RBT_ASAN
#include <sanitizer/common_interface_defs.h>
#endif
#ifdef RBT_TSAN
#include <sanitizer/tsan_interface.h>
#endif

#define GUARD_BYTES 4096u
#if defined(RBT_ASAN) || defined(RBT_TSAN)
#define STACK_BYTES (2048u * 1024) /* instrumented frames are larger */
#else
#define STACK_BYTES (1024u * 1024) /* reserved, not taken: only what is used costs memory */
#endif

struct rbt_coroutine {
    ucontext_t inside;
    ucontext_t outside;
    void (*body)(void *argument);
    void *argument;
    char *memory; /* guard page, then the stack */
    bool ended;
#ifdef RBT_ASAN
    void *fake_inside; /* what the address sanitizer keeps per stack */
    void *fake_outside;
    const void *outside_bottom;
    size_t outside_size;
#endif
#ifdef RBT_TSAN
    void *fiber_inside;
    void *fiber_outside;
#endif
};

static void entry(unsigned high, unsigned low)
{
    rbt_coroutine *coroutine = (rbt_coroutine *)(((uintptr_t)high << 32) | low);

#ifdef RBT_ASAN
    __sanitizer_finish_switch_fiber(NULL, &coroutine->outside_bottom, &coroutine->outside_size);
#endif
    coroutine->body(coroutine->argument);
    coroutine->ended = true;
    rbt_coroutine_yield(coroutine); /* never comes back */
    rbt_panic(__FILE__, __LINE__, "an ended coroutine was resumed");
}

rbt_coroutine *rbt_coroutine_create(void (*body)(void *argument), void *argument)
{
    rbt_coroutine *coroutine = rbt_alloc(1, sizeof *coroutine);
    uintptr_t self = (uintptr_t)coroutine;

    coroutine->body = body;
    coroutine->argument = argument;
    coroutine->memory = mmap(NULL, GUARD_BYTES + STACK_BYTES, PROT_READ | PROT_WRITE,
                             MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE | MAP_STACK, -1, 0);
    if (coroutine->memory != MAP_FAILED && mprotect(coroutine->memory, GUARD_BYTES, PROT_NONE) != 0) {
        munmap(coroutine->memory, GUARD_BYTES + STACK_BYTES);
        coroutine->memory = MAP_FAILED;
    }
    if (coroutine->memory == MAP_FAILED) {
        rbt_free(coroutine);
        return NULL;
    }
    getcontext(&coroutine->inside);
    coroutine->inside.uc_stack.ss_sp = coroutine->memory + GUARD_BYTES;
    coroutine->inside.uc_stack.ss_size = STACK_BYTES;
    coroutine->inside.uc_link = NULL;
    makecontext(&coroutine->inside, (void (*)(void))entry, 2, (unsigned)(self >> 32), (unsigned)self);
#ifdef RBT_TSAN
    coroutine->fiber_inside = __tsan_create_fiber(0);
#endif
    return coroutine;
}

void rbt_coroutine_destroy(rbt_coroutine *coroutine)
{
    if (coroutine == NULL)
        return;
#ifdef RBT_TSAN
    __tsan_destroy_fiber(coroutine->fiber_inside);
#endif
    munmap(coroutine->memory, GUARD_BYTES + STACK_BYTES);
    rbt_free(coroutine);
}

bool rbt_coroutine_has_ended(const rbt_coroutine *coroutine)
{
    return coroutine->ended;
}

void rbt_coroutine_resume(rbt_coroutine *coroutine)
{
    RBT_ASSERT(!coroutine->ended);
#ifdef RBT_ASAN
    __sanitizer_start_switch_fiber(&coroutine->fake_outside, coroutine->memory + GUARD_BYTES, STACK_BYTES);
#endif
#ifdef RBT_TSAN
    coroutine->fiber_outside = __tsan_get_current_fiber();
    __tsan_switch_to_fiber(coroutine->fiber_inside, 0);
#endif
    RBT_ASSERT(swapcontext(&coroutine->outside, &coroutine->inside) == 0);
#ifdef RBT_ASAN
    __sanitizer_finish_switch_fiber(coroutine->fake_outside, NULL, NULL);
#endif
}

void rbt_coroutine_yield(rbt_coroutine *coroutine)
{
#ifdef RBT_ASAN
    __sanitizer_start_switch_fiber(coroutine->ended ? NULL : &coroutine->fake_inside, coroutine->outside_bottom,
                                   coroutine->outside_size);
#endif
#ifdef RBT_TSAN
    __tsan_switch_to_fiber(coroutine->fiber_outside, 0);
#endif
    RBT_ASSERT(swapcontext(&coroutine->inside, &coroutine->outside) == 0);
#ifdef RBT_ASAN
    __sanitizer_finish_switch_fiber(coroutine->fake_inside, &coroutine->outside_bottom, &coroutine->outside_size);
#endif
}
