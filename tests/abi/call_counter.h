/* SPDX-License-Identifier: Apache-2.0
 *
 * Counts calls of functions that a launch must not make, from whatever library in the process makes
 * them: the executable defines the functions, so the dynamic linker binds every library to these.
 * Calls inside of libc itself are not seen; its public entry points are.
 */
#ifndef JITGEMM_TESTS_CALL_COUNTER_H
#define JITGEMM_TESTS_CALL_COUNTER_H

#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

/* clang-format off */
#define COUNTED_FUNCTIONS(X)                                                          \
  X(malloc) X(free) X(calloc) X(realloc) X(aligned_alloc) X(posix_memalign) X(mmap)   \
  X(munmap) X(open) X(open64) X(openat) X(fopen) X(fopen64) X(read) X(write) X(close) \
  X(getenv) X(secure_getenv) X(pthread_mutex_lock) X(pthread_mutex_trylock)           \
  X(pthread_rwlock_rdlock) X(pthread_rwlock_wrlock) X(pthread_cond_wait)              \
  X(pthread_cond_signal) X(pthread_cond_broadcast) X(pthread_once) X(pthread_create)  \
  X(dlopen) X(dlsym) X(syscall)
/* clang-format on */

enum counted_function {
#define X(name) COUNTED_##name,
  COUNTED_FUNCTIONS(X)
#undef X
      COUNTED_TOTAL
};

extern const char* const counted_names[COUNTED_TOTAL];
/* Calls between the two below, by any thread. */
extern uint64_t counted_calls[COUNTED_TOTAL];

/* Count only calls that come from code in this range of addresses, say of one library. */
void counting_from(uintptr_t begin, uintptr_t end);
void counting_start(void);
void counting_stop(void);

#ifdef __cplusplus
}
#endif

#endif
