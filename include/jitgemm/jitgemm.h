/* SPDX-License-Identifier: Apache-2.0
 *
 * jitgemm: matrix products for NVIDIA GPUs whose kernels are specialised at run time.
 *
 * The way through this header:
 *
 *   context    owns settings, the cache of compiled kernels and the compiler
 *   device     one GPU ("cuda:0") or the simulator ("sim"), opened from a context
 *   problem    what is to be computed: sizes, types, layouts, promises; a plain struct
 *   operation  a problem prepared for a device: planned, compiled or found in the cache, loaded
 *   launch     runs an operation on addresses; never compiles, allocates, locks or opens files
 *
 * Rules that hold for every function here:
 *
 *   Errors     Functions return a jitgemm_status. After a failure jitgemm_last_error() gives, to
 *              the same thread, the parameter's name, what was expected and what was found.
 *   Threads    Every function may be called by any number of threads at once, also on one handle;
 *              releasing a handle while another thread uses it is the exception. After fork() the
 *              child may use what the parent made on the simulator, if no thread was in a call;
 *              the driver's and the compiler's own rules hold for the rest.
 *   Ownership  Handles are released by the function of their name; NULL is accepted there. A handle
 *              keeps what it was made from alive, so the order of releases does not matter. Strings
 *              and structs that are passed in are read during the call only.
 *   Structs    Each begins with struct_size, set by its _INIT macro; zero in any other field is the
 *              default.
 *   Streams    A stream is a CUstream (a cudaStream_t is the same), passed as void*. NULL is the
 *              device's default stream. Addresses are device addresses; on the simulator, host
 *              addresses.
 *
 * The header is C99 and C++; it needs no CUDA header.
 */
#ifndef JITGEMM_JITGEMM_H
#define JITGEMM_JITGEMM_H

#include <stddef.h>
#include <stdint.h>

#if defined(JITGEMM_BUILDING_LIBRARY)
#define JITGEMM_API __attribute__((visibility("default")))
#else
#define JITGEMM_API
#endif

#ifdef __cplusplus
extern "C" {
#endif

/* ---- Version --------------------------------------------------------------------------------- */

#define JITGEMM_VERSION_MAJOR 0
#define JITGEMM_VERSION_MINOR 1
#define JITGEMM_VERSION_PATCH 0

/* "0.1.0", of the library that was loaded. Static storage. */
JITGEMM_API const char* jitgemm_version(void);

/* ---- Status ---------------------------------------------------------------------------------- */

/* The numbers never change. */
typedef int32_t jitgemm_status;

#define JITGEMM_STATUS_OK 0
#define JITGEMM_STATUS_INVALID_ARGUMENT 1  /* the call is wrong */
#define JITGEMM_STATUS_UNSUPPORTED 2       /* the call is right, but there is no kernel for it */
#define JITGEMM_STATUS_NOT_READY 3         /* not prepared on this device */
#define JITGEMM_STATUS_CAPTURE_NOT_READY 4 /* the same, while capturing; the capture is intact */
#define JITGEMM_STATUS_COMPILE_FAILED 10   /* the compiler's log is in the message */
#define JITGEMM_STATUS_NO_COMPILER 11      /* NVRTC could not be opened */
#define JITGEMM_STATUS_NO_DRIVER 20        /* the CUDA driver could not be opened */
#define JITGEMM_STATUS_DEVICE_ERROR 21     /* the driver's name for the error is in the message */
#define JITGEMM_STATUS_OUT_OF_MEMORY 22    /* of the host or the device */
#define JITGEMM_STATUS_SIMULATOR_FAULT 30  /* the simulated kernel broke a rule; see the message */
#define JITGEMM_STATUS_IO_ERROR 40
#define JITGEMM_STATUS_CORRUPT_DATA 41
#define JITGEMM_STATUS_VERIFICATION_FAILED 50
#define JITGEMM_STATUS_INTERNAL 99 /* a bug in jitgemm */

/* The name without its prefix, e.g. "INVALID_ARGUMENT"; "UNKNOWN" for other numbers. Static
 * storage. */
JITGEMM_API const char* jitgemm_status_name(jitgemm_status status);

/* The message of the calling thread's last failure, "" if there was none. Valid until that thread's
 * next failure. */
JITGEMM_API const char* jitgemm_last_error(void);

/* ---- Context --------------------------------------------------------------------------------- */

typedef struct jitgemm_context jitgemm_context;

/* Levels: 1 error, 2 warning, 3 info, 4 debug. Called by any thread; must not call jitgemm. */
typedef void (*jitgemm_log_callback)(int32_t level, const char* message, void* user);

/* Each setting has an environment variable, read when the context is created; the option wins.
 * NULL is "not given". */
typedef struct jitgemm_context_options {
  size_t struct_size;
  /* JITGEMM_CACHE_DIR, else XDG_CACHE_HOME/jitgemm, else HOME/.cache/jitgemm. A relative path is
   * below the working directory of the time when the context is created. */
  const char* cache_folder;
  /* JITGEMM_CACHE: "rw" (default), "ro" or "memory" */
  const char* cache_mode;
  /* JITGEMM_NVRTC: a file; default: found by the loader or in the usual folders */
  const char* nvrtc_library;
  /* JITGEMM_DRIVER: a file; default: libcuda.so.1 */
  const char* driver_library;
  /* JITGEMM_TEMPLATES: kernel templates from this folder, while developing them */
  const char* template_folder;
  /* JITGEMM_LOG: "off" (default), "error", "warning", "info" or "debug" */
  const char* log_level;
  /* JITGEMM_SIM_NUMERICS: "auto" (default), "exact", "hopper" or "blackwell" */
  const char* sim_numerics;
  /* JITGEMM_SIM_SEED: "0" (default) finishes asynchronous work as late as is legal */
  const char* sim_seed;
  /* JITGEMM_SIM_THREADS: "0" (default) is one a core */
  const char* sim_threads;
  /* JITGEMM_SIM_SANITIZE: "1" (default), "no-races" or "0" */
  const char* sim_sanitize;
  jitgemm_log_callback log; /* NULL: standard error */
  void* log_user;
  /* JITGEMM_TUNING_DB: the file of measured plans; default: tuning.json in the cache folder. "off":
   * neither that nor what the library ships */
  const char* tuning_database;
} jitgemm_context_options;

#define JITGEMM_CONTEXT_OPTIONS_INIT \
  { sizeof(jitgemm_context_options), 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0 }

/* options may be NULL. Opens neither driver nor compiler. Errors: INVALID_ARGUMENT, CORRUPT_DATA
 * and IO_ERROR (a tuning database that was named and is damaged, or cannot be read; one that does
 * not exist holds nothing). A cache folder that cannot be used is no error: kernels are then kept
 * in memory, and a warning is logged. */
JITGEMM_API jitgemm_status jitgemm_context_create(const jitgemm_context_options* options,
                                                  jitgemm_context** context);
JITGEMM_API void jitgemm_context_release(jitgemm_context* context);

/* ---- Device ---------------------------------------------------------------------------------- */

typedef struct jitgemm_device jitgemm_device;

/* Compile targets. The numbers never change. */
#define JITGEMM_ARCH_OF_DEVICE 0 /* the GPU's own; sm_90a on the simulator */
#define JITGEMM_ARCH_SM_90A 900
#define JITGEMM_ARCH_SM_100A 1000
#define JITGEMM_ARCH_SM_100F 1001 /* the family: runs on 10.0 and 10.3; NVRTC 12.9 and newer */
#define JITGEMM_ARCH_SM_103A 1030
#define JITGEMM_ARCH_SM_103F 1031 /* runs on 10.3; NVRTC 12.9 and newer */

/* name: "cuda:N", or "sim" for the simulator, which can be any arch. Uses the GPU's primary
 * context. Errors: INVALID_ARGUMENT, UNSUPPORTED (a GPU without kernels, or not of that arch),
 * NO_DRIVER, DEVICE_ERROR. */
JITGEMM_API jitgemm_status jitgemm_device_open(jitgemm_context* context, const char* name,
                                               int32_t arch, jitgemm_device** device);
JITGEMM_API void jitgemm_device_release(jitgemm_device* device);
/* One of JITGEMM_ARCH_*; 0 for NULL. */
JITGEMM_API int32_t jitgemm_device_arch(const jitgemm_device* device);
/* Waits for everything on the stream. Errors: DEVICE_ERROR. */
JITGEMM_API jitgemm_status jitgemm_device_synchronize(jitgemm_device* device, void* stream);

/* ---- Memory: conveniences that let one program run on a GPU and on the simulator --------------
 */

typedef struct jitgemm_buffer jitgemm_buffer;

/* Uninitialised memory, aligned to 256 bytes. Errors: OUT_OF_MEMORY, DEVICE_ERROR. */
JITGEMM_API jitgemm_status jitgemm_buffer_create(jitgemm_device* device, size_t bytes,
                                                 jitgemm_buffer** buffer);
JITGEMM_API void jitgemm_buffer_release(jitgemm_buffer* buffer);
/* The address to put into arguments; NULL for NULL. */
JITGEMM_API void* jitgemm_buffer_address(const jitgemm_buffer* buffer);
/* Copies between host and buffer; waits for the default stream. Errors: INVALID_ARGUMENT (beyond
 * the buffer), DEVICE_ERROR. */
JITGEMM_API jitgemm_status jitgemm_buffer_write(jitgemm_buffer* buffer, size_t offset,
                                                const void* source, size_t bytes);
JITGEMM_API jitgemm_status jitgemm_buffer_read(const jitgemm_buffer* buffer, size_t offset,
                                               void* destination, size_t bytes);

/* ---- The problem: block_scaled_mm -------------------------------------------------------------
 *
 *   out[i,j] = sum over kb of dot(a[i,kb], b[j,kb]) * (a_scales[i,kb] * b_scales[j / group_n, kb])
 *
 * where kb runs over the blocks of group_k columns (the last may be short) and dot is over one
 * block. a is [m,k], b is [n,k], both FP8 with k contiguous; out is [m,n] with n contiguous.
 *
 * Rounding, per block: the dot as the tensor core accumulates it, the product of the two scales
 * rounded to fp32, one fused multiply-add into an fp32 accumulator, blocks in rising order. Where a
 * plan splits k, each part is summed so and the parts are added in rising order: results do not
 * depend on timing. NaN and infinities propagate; nothing is flushed to zero.
 *
 * An a of F32, BF16 or F16 is quantised by the operation itself, into codes and scales that lie in
 * the workspace; the caller gives no a_scales. In fp32, for each row and block of group_k columns:
 *
 *   scale = max(max |a| / largest, 1e-10)    largest is 448 for F8_E4M3, 57344 for F8_E5M2
 *   code  = fp8(a / scale)                   to nearest even, saturating
 *
 * With F8_E8M0 scales, or under SCALE_VALUES_POWER_OF_TWO, the scale is rounded up to a power of
 * two before it is used. A NaN makes its block's scale and codes NaN; an infinity makes the scale
 * infinite (E8M0: NaN), its own code NaN and the other codes zero.
 *
 * Scales, by arch. F32 scales are arbitrary and applied exactly everywhere. F8_E8M0 is 2^(e-127),
 * 255 is NaN: SM 9.0 expands it to fp32 exactly and goes on as above; on SM 10 the tensor core
 * applies such scales, and fp32 ones under SCALE_VALUES_POWER_OF_TWO, itself. a_dtype, b_dtype,
 * out_dtype and every group size are the same on all archs.
 */

typedef int32_t jitgemm_dtype;
#define JITGEMM_F8_E4M3 1
#define JITGEMM_F8_E5M2 2
#define JITGEMM_F8_E8M0 3 /* a power of two: scales only */
#define JITGEMM_F16 4
#define JITGEMM_BF16 5
#define JITGEMM_F32 6

#define JITGEMM_SCALE_MAJOR_ROW 0    /* blocks of k contiguous */
#define JITGEMM_SCALE_MAJOR_COLUMN 1 /* rows contiguous */
/* F8_E8M0 only: the bytes of four blocks of k of a row in one 32-bit word, the lowest block in the
 * lowest byte; words of one column contiguous. Distances count words; dense columns are a multiple
 * of four words long. Blocks beyond k may hold anything. */
#define JITGEMM_SCALE_MAJOR_PACKED 2

#define JITGEMM_SCALE_VALUES_ANY 0 /* applied exactly */
/* A promise: every scale is a positive power of two, 2^-127 to 2^127. */
#define JITGEMM_SCALE_VALUES_POWER_OF_TWO 1

#define JITGEMM_M_EXACT 0 /* m is a constant of the kernel: one kernel an m */
#define JITGEMM_M_CLASS 1 /* one kernel a class of m; at most 32 classes up to 16384 */
#define JITGEMM_M_ANY 2   /* one kernel for every m */

typedef struct jitgemm_gemm_problem {
  size_t struct_size;
  int64_t m; /* rows of a and out, 0 or more; under M_CLASS and M_ANY a typical or largest one */
  int64_t n; /* rows of b, columns of out, 1 or more */
  int64_t k; /* columns of a and b, 1 or more */
  jitgemm_dtype a_dtype;     /* F8_E4M3 (default), F8_E5M2; F32, BF16 or F16: quantised first */
  jitgemm_dtype b_dtype;     /* F8_E4M3 (default) or F8_E5M2 */
  jitgemm_dtype scale_dtype; /* F32 (default) or F8_E8M0, for both operands, on every arch */
  jitgemm_dtype out_dtype;   /* BF16 (default), F16 or F32 */
  int32_t group_n;           /* rows of b that share a scale; 0 is 128 */
  int32_t group_k;           /* columns that share a scale, a multiple of 32; 0 is 128 */
  int32_t a_scale_major;     /* JITGEMM_SCALE_MAJOR_* of a_scales [m, ceil(k / group_k)] */
  int32_t b_scale_major;     /* the same of b_scales [ceil(n / group_n), ceil(k / group_k)] */
  int32_t scale_values;      /* JITGEMM_SCALE_VALUES_* */
  int32_t m_policy;          /* JITGEMM_M_* */
  int64_t lda;               /* elements between rows of a; 0 is k */
  int64_t ldb;               /* elements between rows of b; 0 is k */
  int64_t ldo;               /* elements between rows of out; 0 is n */
  int64_t a_scale_ld;      /* elements between rows (column-major: columns) of a_scales; 0: dense */
  int64_t b_scale_ld;      /* the same of b_scales */
  int32_t alignment;       /* bytes, a power of two, that a, b and out are multiples of; 0 is 16 */
  int32_t batch_invariant; /* 1: a row's bits depend neither on m nor on other rows */
  jitgemm_dtype a_code_dtype; /* what an a of F32, BF16 or F16 becomes: F8_E4M3 (default) or
                                 F8_E5M2; 0 otherwise */
  int32_t reserved;           /* 0 */
} jitgemm_gemm_problem;

#define JITGEMM_GEMM_PROBLEM_INIT \
  { sizeof(jitgemm_gemm_problem), 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0 }

/* The largest m of m's class under JITGEMM_M_CLASS: one kernel serves all of a class, so
 * those of m = 1, bound(1) + 1, and so on are all there are. For m below 1 it is 1,
 * and m beyond 2^31 count as 2^31. */
JITGEMM_API int64_t jitgemm_m_class_bound(int64_t m);

/* Says in a few lines which launches the problem would get on a GPU of that arch of the usual size,
 * each with its kernel and why, and the bytes of workspace; with the measured plans that are
 * part of the library, but none of a context's own: jitgemm_operation_describe says what an
 * operation has got. *length is the size
 * of text (0 with text NULL asks for the size) and becomes the length needed, terminating zero
 * included; text that does not fit is cut. Errors: INVALID_ARGUMENT, UNSUPPORTED. */
JITGEMM_API jitgemm_status jitgemm_gemm_plan(const jitgemm_gemm_problem* problem, int32_t arch,
                                             char* text, size_t* length);

/* Compiles the problem's kernels for an arch into the cache, unless it is there; needs no device.
 * Takes up to half a second. Errors: those of jitgemm_gemm_plan, NO_COMPILER, COMPILE_FAILED. */
JITGEMM_API jitgemm_status jitgemm_gemm_compile(jitgemm_context* context,
                                                const jitgemm_gemm_problem* problem, int32_t arch);

/* ---- Operation --------------------------------------------------------------------------------
 */

typedef struct jitgemm_operation jitgemm_operation;

/* Plans, compiles if the cache has no such kernel, and loads. Not for a thread that captures a
 * graph. Preparing the same problem again is cheap. Errors: those of jitgemm_gemm_compile,
 * DEVICE_ERROR. */
JITGEMM_API jitgemm_status jitgemm_gemm_prepare(jitgemm_device* device,
                                                const jitgemm_gemm_problem* problem,
                                                jitgemm_operation** operation);
/* The operation that was prepared for this problem on this device; compiles and loads nothing. If
 * there is none: CAPTURE_NOT_READY when the stream is being captured, else NOT_READY. */
JITGEMM_API jitgemm_status jitgemm_gemm_find(jitgemm_device* device,
                                             const jitgemm_gemm_problem* problem, void* stream,
                                             jitgemm_operation** operation);
JITGEMM_API void jitgemm_operation_release(jitgemm_operation* operation);
/* An operation is a list of launches over one workspace: the product, before it one that quantises
 * a where that is asked for, and one that copies rows to where TMA can address them where that
 * pays (k or a leading dimension that is no multiple of 16 bytes, on Hopper). Bytes of workspace
 * that a launch with the problem's m needs (often 0) and its alignment. Its contents may be
 * arbitrary before and are arbitrary afterwards; launches that may overlap need a workspace each.
 */
JITGEMM_API jitgemm_status jitgemm_operation_workspace(const jitgemm_operation* operation,
                                                       uint64_t* bytes, uint64_t* alignment);
/* The same for a launch with another m, under M_CLASS and M_ANY. */
JITGEMM_API jitgemm_status jitgemm_operation_workspace_for(const jitgemm_operation* operation,
                                                           int64_t m, uint64_t* bytes,
                                                           uint64_t* alignment);
/* The plan in a few lines; text and length as in jitgemm_gemm_plan. */
JITGEMM_API jitgemm_status jitgemm_operation_describe(const jitgemm_operation* operation,
                                                      char* text, size_t* length);

typedef struct jitgemm_gemm_arguments {
  size_t struct_size;
  const void* a;
  const void* b;
  const void* a_scales; /* NULL where the operation quantises a */
  const void* b_scales;
  void* out; /* may not overlap what is read */
  int64_t m; /* under M_EXACT the problem's m; 0 launches nothing */
  void* workspace;
  uint64_t workspace_bytes;
  uint32_t flags; /* JITGEMM_LAUNCH_* */
  uint32_t reserved;
} jitgemm_gemm_arguments;

#define JITGEMM_GEMM_ARGUMENTS_INIT \
  { sizeof(jitgemm_gemm_arguments), 0, 0, 0, 0, 0, 0, 0, 0, 0, 0 }

/* The kernel may start before its predecessor on the stream has ended, and waits for it before it
 * reads. */
#define JITGEMM_LAUNCH_PROGRAMMATIC_DEPENDENCE 1u
/* Asks the driver first whether each address is memory of this device, and refuses the launch with
 * INVALID_ARGUMENT if one is not, say pageable host memory: a debugging aid. Pinned host memory,
 * which the device can reach, passes. The simulator checks every access anyway. */
#define JITGEMM_LAUNCH_CHECK_ADDRESSES 2u

/* Puts the operation on the stream. On a GPU it returns at once, and works in graph capture; on the
 * simulator it returns when the result is there. Errors: INVALID_ARGUMENT, DEVICE_ERROR,
 * SIMULATOR_FAULT. */
JITGEMM_API jitgemm_status jitgemm_gemm_launch(const jitgemm_operation* operation,
                                               const jitgemm_gemm_arguments* arguments,
                                               void* stream);

/* Checks the promise JITGEMM_SCALE_VALUES_POWER_OF_TWO on actual fp32 scales by copying them to the
 * host: a debugging aid, not for a hot path. INVALID_ARGUMENT names the first scale that breaks it.
 * All scales of the shape are looked at, also those of rows that no group uses.
 */
JITGEMM_API jitgemm_status jitgemm_gemm_check_scales(const jitgemm_operation* operation,
                                                     const jitgemm_gemm_arguments* arguments);

/* ---- Grouped products: group_gemm_fp8_nt_groupwise ---------------------------------------------
 *
 * Several products that share one launch: each group g has a b and b_scales of its own, and rows
 * of a and out.
 *
 *   out[i,j] = sum over kb of
 *       dot(a[i,kb], b[g,j,kb]) * (a_scales[i,kb] * b_scales[g, j / group_n, kb])
 *
 * b is [groups,n,k], b_scales [groups, ceil(n / group_n), ceil(k / group_k)]. Which rows are in
 * group g is known on the device only: it is read from 32-bit integers in device memory when the
 * kernel runs, so that a captured graph may be replayed with other contents. Per layout:
 *
 *   ROW_INDICES   [m] the group of each row, -1 for none. Any order; groups may be missing, may
 *                 come back, may change with every row; nothing needs to be aligned or padded. Runs
 *                 that begin at multiples of a tile's rows are fastest.
 *   END_OFFSETS   [groups] where each group's rows end; they begin where the group before ended,
 *                 rounded up to a multiple of row_alignment.
 *   ROW_POINTERS  [groups + 1] where each group's rows begin; the last is where they end.
 *   MASKED        [groups] how many rows of each group are in use. Here every group has m rows: a
 *                 is [groups,m,k], out [groups,m,n], a_scales [groups, m, ceil(k / group_k)].
 *
 * Rows of no group are not written or, with zero_ungrouped, become zero: those with index -1, those
 * between groups and behind the last, those of a MASKED group that are not in use. Their operands
 * never matter, and the zeroing needs no launch of its own. Where offsets or pointers fall instead
 * of rising, rows may be of two groups: they get the result of either, or may be zeroed, too, and
 * the simulator reports the race. An index
 * that is no group is taken as -1, a bound outside of [0, m] as the nearest in it: nothing is ever
 * read or written out of bounds, whatever the integers are. A group without rows costs nothing.
 *
 * Operands of 16 bits, both F16 or both BF16, have no scales: out is the plain product, summed by
 * the tensor core in fp32. Their a_scales and b_scales are NULL, and what a problem says of scales
 * does not matter.
 *
 * Rounding is that of block_scaled_mm. A row's bits depend on neither its place nor other rows,
 * unless the plan says that it splits k.
 */

#define JITGEMM_GROUPS_ROW_INDICES 1
#define JITGEMM_GROUPS_END_OFFSETS 2
#define JITGEMM_GROUPS_ROW_POINTERS 3
#define JITGEMM_GROUPS_MASKED 4
#define JITGEMM_GROUPS_COLUMNS 5 /* groups along k: UNSUPPORTED */

typedef struct jitgemm_grouped_gemm_problem {
  size_t struct_size;
  int64_t m;          /* rows of a and out; MASKED: of each group; as in jitgemm_gemm_problem */
  int64_t n;          /* rows of each group's b */
  int64_t k;          /* columns of a and b */
  int64_t groups;     /* 1 or more */
  int64_t expected_m; /* rows of an average group, for the choice of tiles only; 0: unknown */
  int64_t lda;        /* elements between rows of a; 0 is k */
  int64_t ldb;        /* elements between rows of b; 0 is k */
  int64_t ldo;        /* elements between rows of out; 0 is n */
  int64_t a_scale_ld; /* as in jitgemm_gemm_problem */
  int64_t b_scale_ld;
  int64_t a_group_stride;       /* MASKED: elements between groups of a; 0: dense. Others: 0 */
  int64_t b_group_stride;       /* elements between groups of b; 0: n times ldb */
  int64_t out_group_stride;     /* MASKED: elements between groups of out; 0: dense. Others: 0 */
  int64_t a_scale_group_stride; /* MASKED: elements between groups of a_scales; 0: dense */
  int64_t b_scale_group_stride; /* elements between groups of b_scales; 0: dense */
  int32_t layout;               /* JITGEMM_GROUPS_* */
  jitgemm_dtype a_dtype;        /* F8_E4M3 (default), F8_E5M2, or F16 or BF16 without scales */
  jitgemm_dtype b_dtype;        /* F8_E4M3 (default) or F8_E5M2; a_dtype, if that is F16 or BF16 */
  jitgemm_dtype scale_dtype;    /* F32 (default) or F8_E8M0, for both operands */
  jitgemm_dtype out_dtype;      /* BF16 (default), F16 or F32 */
  int32_t group_n;              /* rows of b that share a scale; 0 is 128 */
  int32_t group_k;              /* columns that share a scale, a multiple of 32; 0 is 128 */
  int32_t a_scale_major;        /* JITGEMM_SCALE_MAJOR_* */
  int32_t b_scale_major;        /* JITGEMM_SCALE_MAJOR_* */
  int32_t scale_values;         /* JITGEMM_SCALE_VALUES_* */
  int32_t m_policy;  /* JITGEMM_M_*; m only guides the choice of tiles, under M_ANY not even that */
  int32_t alignment; /* bytes, a power of two, of a, b and out; 0 is 16 */
  /* END_OFFSETS: see there; 0 is 1. ROW_INDICES: runs usually begin at multiples of it, a hint; 0
   * is 128. Others: 0 */
  int32_t row_alignment;
  int32_t zero_ungrouped;  /* 1 zeroes the rows of out that are in no group; see above */
  int32_t count_invalid;   /* 1: out-of-range integers are counted, see invalid_count */
  int32_t batch_invariant; /* 1: as in jitgemm_gemm_problem */
} jitgemm_grouped_gemm_problem;

#define JITGEMM_GROUPED_GEMM_PROBLEM_INIT                                                          \
  {                                                                                                \
    sizeof(jitgemm_grouped_gemm_problem), 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, \
        0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0                                                         \
  }

/* As jitgemm_gemm_plan, jitgemm_gemm_compile, jitgemm_gemm_prepare and jitgemm_gemm_find. The
 * operation is described, asked for its workspace and released like any other. */
JITGEMM_API jitgemm_status jitgemm_grouped_gemm_plan(const jitgemm_grouped_gemm_problem* problem,
                                                     int32_t arch, char* text, size_t* length);
JITGEMM_API jitgemm_status jitgemm_grouped_gemm_compile(jitgemm_context* context,
                                                        const jitgemm_grouped_gemm_problem* problem,
                                                        int32_t arch);
JITGEMM_API jitgemm_status jitgemm_grouped_gemm_prepare(jitgemm_device* device,
                                                        const jitgemm_grouped_gemm_problem* problem,
                                                        jitgemm_operation** operation);
JITGEMM_API jitgemm_status jitgemm_grouped_gemm_find(jitgemm_device* device,
                                                     const jitgemm_grouped_gemm_problem* problem,
                                                     void* stream, jitgemm_operation** operation);

typedef struct jitgemm_grouped_gemm_arguments {
  size_t struct_size;
  const void* a;
  const void* b;
  const void* a_scales;
  const void* b_scales;
  const int32_t* group_rows; /* the layout's integers, on the device */
  void* out;                 /* may not overlap what is read */
  int64_t m;                 /* under M_EXACT the problem's m; 0 launches nothing */
  /* With count_invalid: where the kernel adds, atomically, how many integers were out of range. It
   * is not cleared first. Otherwise NULL. */
  uint32_t* invalid_count;
  void* workspace;
  uint64_t workspace_bytes;
  uint32_t flags; /* JITGEMM_LAUNCH_* */
  uint32_t reserved;
} jitgemm_grouped_gemm_arguments;

#define JITGEMM_GROUPED_GEMM_ARGUMENTS_INIT \
  { sizeof(jitgemm_grouped_gemm_arguments), 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0 }

/* As jitgemm_gemm_launch, for an operation of a grouped problem. One kernel, no host reads. */
JITGEMM_API jitgemm_status
jitgemm_grouped_gemm_launch(const jitgemm_operation* operation,
                            const jitgemm_grouped_gemm_arguments* arguments, void* stream);

/* As jitgemm_gemm_check_scales. */
JITGEMM_API jitgemm_status jitgemm_grouped_gemm_check_scales(
    const jitgemm_operation* operation, const jitgemm_grouped_gemm_arguments* arguments);

/* ---- Any kernel on the simulator ---------------------------------------------------------------
 *
 * Runs launches of a PTX module that need not be ours, as a JSON document describes them:
 * docs/simulator.md. Needs neither context nor device nor GPU. The kernel can touch the buffers
 * that the document names, its module's variables, and nothing else of the process.
 */

/* An element of an array, so it has no struct_size. */
typedef struct jitgemm_sim_buffer {
  const char* name; /* of a buffer of the document */
  void* data;       /* its contents before the run and, unless its access is "in", after it */
  size_t bytes;     /* exactly the buffer's */
} jitgemm_sim_buffer;

/* The text is valid during the call only. Must not call jitgemm. */
typedef void (*jitgemm_text_callback)(const char* text, size_t length, void* user);

typedef struct jitgemm_sim_run_arguments {
  size_t struct_size;
  const char* ptx;                   /* text of the module */
  const char* launch_json;           /* text of the document */
  const char* folder;                /* of the files that it names; NULL is the current folder */
  const jitgemm_sim_buffer* buffers; /* contents that come from memory; may be NULL */
  size_t buffer_count;
  jitgemm_text_callback report; /* gets the report, a JSON document, after a run; may be NULL */
  void* report_user;
} jitgemm_sim_run_arguments;

#define JITGEMM_SIM_RUN_ARGUMENTS_INIT \
  { sizeof(jitgemm_sim_run_arguments), 0, 0, 0, 0, 0, 0, 0 }

/* Errors: INVALID_ARGUMENT and CORRUPT_DATA (the document), UNSUPPORTED (the PTX has an instruction
 * that is not simulated), OUT_OF_MEMORY (beyond the memory limit), IO_ERROR, SIMULATOR_FAULT (the
 * kernel broke a rule, or a limit was reached; no buffer is changed), VERIFICATION_FAILED (a buffer
 * does not hold what the document expects; buffers and report are there all the same). */
JITGEMM_API jitgemm_status jitgemm_sim_run(const jitgemm_sim_run_arguments* arguments);

#ifdef __cplusplus
}
#endif

#endif /* JITGEMM_JITGEMM_H */
