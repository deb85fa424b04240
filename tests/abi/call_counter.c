/* SPDX-License-Identifier: Apache-2.0 */
#define _GNU_SOURCE
#include "call_counter.h"

#include <dlfcn.h>
#include <fcntl.h>
#include <pthread.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <sys/mman.h>
#include <sys/types.h>

/* Seen by other libraries although the build hides symbols by default. */
#define COUNTED __attribute__((visibility("default")))

const char* const counted_names[COUNTED_TOTAL] = {
#define X(name) #name,
    COUNTED_FUNCTIONS(X)
#undef X
};
uint64_t counted_calls[COUNTED_TOTAL];
static int counting;
/* Only calls from here are counted; all, while both are zero. */
static uintptr_t callers_begin, callers_end;

void counting_from(uintptr_t begin, uintptr_t end) {
  callers_begin = begin;
  callers_end = end;
}
void counting_start(void) {
  for (int i = 0; i < COUNTED_TOTAL; ++i) counted_calls[i] = 0;
  __atomic_store_n(&counting, 1, __ATOMIC_SEQ_CST);
}
void counting_stop(void) {
  __atomic_store_n(&counting, 0, __ATOMIC_SEQ_CST);
}

static void count(enum counted_function function, const void* caller) {
  if (!__atomic_load_n(&counting, __ATOMIC_RELAXED)) return;
  const uintptr_t from = (uintptr_t)caller;
  if (callers_end != 0 && (from < callers_begin || from >= callers_end)) return;
  __atomic_fetch_add(&counted_calls[function], 1, __ATOMIC_RELAXED);
}
#define COUNT(name) count(COUNTED_##name, __builtin_return_address(0))

/* glibc's allocator by the names that it exports for this; dlsym itself allocates. */
extern void* __libc_malloc(size_t);
extern void __libc_free(void*);
extern void* __libc_calloc(size_t, size_t);
extern void* __libc_realloc(void*, size_t);
extern void* __libc_memalign(size_t, size_t);

COUNTED void* malloc(size_t bytes) {
  COUNT(malloc);
  return __libc_malloc(bytes);
}
COUNTED void free(void* memory) {
  COUNT(free);
  __libc_free(memory);
}
COUNTED void* calloc(size_t items, size_t bytes) {
  COUNT(calloc);
  return __libc_calloc(items, bytes);
}
COUNTED void* realloc(void* memory, size_t bytes) {
  COUNT(realloc);
  return __libc_realloc(memory, bytes);
}
COUNTED void* aligned_alloc(size_t alignment, size_t bytes) {
  COUNT(aligned_alloc);
  return __libc_memalign(alignment, bytes);
}
COUNTED int posix_memalign(void** memory, size_t alignment, size_t bytes) {
  COUNT(posix_memalign);
  *memory = __libc_memalign(alignment, bytes);
  return *memory == NULL ? 12 : 0; /* ENOMEM */
}

/* libc's own function behind ours. dlsym is found by its versioned name, since ours hides it. */
typedef void* dlsym_function(void*, const char*);
static dlsym_function* real_dlsym(void) {
  static dlsym_function* found;
  dlsym_function* function = __atomic_load_n(&found, __ATOMIC_RELAXED);
  if (function == NULL) {
    static const char* const versions[] = {"GLIBC_2.34", "GLIBC_2.17", "GLIBC_2.2.5"};
    for (int i = 0; i < 3 && function == NULL; ++i)
      *(void**)&function = dlvsym(RTLD_NEXT, "dlsym", versions[i]);
    __atomic_store_n(&found, function, __ATOMIC_RELAXED);
  }
  return function;
}
COUNTED void* dlsym(void* handle, const char* name) {
  COUNT(dlsym);
  return real_dlsym()(handle, name);
}

#define REAL(name)                                                       \
  static __typeof__(name)* real;                                         \
  __typeof__(name)* function = __atomic_load_n(&real, __ATOMIC_RELAXED); \
  COUNT(name);                                                           \
  if (function == NULL) {                                                \
    *(void**)&function = real_dlsym()(RTLD_NEXT, #name);                 \
    __atomic_store_n(&real, function, __ATOMIC_RELAXED);                 \
  }

#define FORWARD(result, name, parameters, arguments) \
  COUNTED result name parameters {                   \
    REAL(name)                                       \
    return function arguments;                       \
  }

FORWARD(void*, mmap, (void* a, size_t n, int prot, int flags, int fd, off_t offset),
        (a, n, prot, flags, fd, offset))
FORWARD(int, munmap, (void* a, size_t n), (a, n))
FORWARD(FILE*, fopen, (const char* path, const char* mode), (path, mode))
FORWARD(FILE*, fopen64, (const char* path, const char* mode), (path, mode))
FORWARD(ssize_t, read, (int fd, void* to, size_t n), (fd, to, n))
FORWARD(ssize_t, write, (int fd, const void* from, size_t n), (fd, from, n))
FORWARD(int, close, (int fd), (fd))
FORWARD(char*, getenv, (const char* name), (name))
FORWARD(char*, secure_getenv, (const char* name), (name))
FORWARD(int, pthread_mutex_lock, (pthread_mutex_t * mutex), (mutex))
FORWARD(int, pthread_mutex_trylock, (pthread_mutex_t * mutex), (mutex))
FORWARD(int, pthread_rwlock_rdlock, (pthread_rwlock_t * lock), (lock))
FORWARD(int, pthread_rwlock_wrlock, (pthread_rwlock_t * lock), (lock))
FORWARD(int, pthread_cond_wait, (pthread_cond_t * condition, pthread_mutex_t* mutex),
        (condition, mutex))
FORWARD(int, pthread_cond_signal, (pthread_cond_t * condition), (condition))
FORWARD(int, pthread_cond_broadcast, (pthread_cond_t * condition), (condition))
FORWARD(int, pthread_once, (pthread_once_t * once, void (*routine)(void)), (once, routine))
FORWARD(int, pthread_create,
        (pthread_t * thread, const pthread_attr_t* attributes, void* (*routine)(void*),
         void* argument),
        (thread, attributes, routine, argument))
FORWARD(void*, dlopen, (const char* path, int flags), (path, flags))

/* A mode was passed only where the flags say that a file may be made. */
#define FORWARD_OPEN(name)                                                               \
  COUNTED int name(const char* path, int flags, ...) {                                   \
    REAL(name)                                                                           \
    va_list rest;                                                                        \
    va_start(rest, flags);                                                               \
    const mode_t mode = (flags & (O_CREAT | O_TMPFILE)) != 0 ? va_arg(rest, mode_t) : 0; \
    va_end(rest);                                                                        \
    return function(path, flags, mode);                                                  \
  }
FORWARD_OPEN(open)
FORWARD_OPEN(open64)
COUNTED int openat(int folder, const char* path, int flags, ...) {
  REAL(openat)
  va_list rest;
  va_start(rest, flags);
  const mode_t mode = (flags & (O_CREAT | O_TMPFILE)) != 0 ? va_arg(rest, mode_t) : 0;
  va_end(rest);
  return function(folder, path, flags, mode);
}
/* futex among others: std::atomic::wait and waits of libstdc++ come this way. */
COUNTED long syscall(long number, ...) {
  REAL(syscall)
  long a[6];
  va_list rest;
  va_start(rest, number);
  for (int i = 0; i < 6; ++i) a[i] = va_arg(rest, long);
  va_end(rest);
  return function(number, a[0], a[1], a[2], a[3], a[4], a[5]);
}
