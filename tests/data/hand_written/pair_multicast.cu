// SPDX-License-Identifier: Apache-2.0
// A test of the simulator: one kernel that joins what large Blackwell kernels do. Clusters of two
// CTA pairs; operands exchanged (the weights are the matrix A of the instruction, so the result is
// written transposed); weights, activations and scale factors through tensor maps of three
// dimensions; activations multicast to both pairs; scale factors brought to tensor memory by
// tcgen05.cp; stages freed by tcgen05.commit with multicast; setmaxnreg for the roles.
//
//   out[b][m][n] = sum over k of x[b][m][k] sx[b][m][k / 32] * w[b][n][k] sw[b][n][k / 32]
//
// in e4m3 with ue8m0 scales. 512 rows of w and 64 of x a cluster. Scale factors come in groups of
// 128 rows and 128 columns of k, 512 bytes each: byte 16 * (row % 32) + 4 * (row / 32) + block of
// 32. Compiled with: nvcc -arch=sm_100a -std=c++17 -ptx
struct alignas(64) TensorMap {
  char bytes[128];
};

namespace {

constexpr unsigned kStages = 3;
constexpr unsigned kThreads = 256;
constexpr unsigned kTileK = 128;
constexpr unsigned kRows = 128;      // of w in a CTA
constexpr unsigned kPairRows = 256;  // M of the instruction
constexpr unsigned kColumns = 64;    // N of the instruction: rows of x
constexpr unsigned kWeightBytes = kRows * kTileK;
constexpr unsigned kActivationBytes = kColumns / 2 * kTileK;  // each CTA of a pair holds half
constexpr unsigned kScaleBytes = 512;
constexpr unsigned kStageBytes = kWeightBytes + kActivationBytes + 2 * kScaleBytes;
constexpr unsigned kDynamicBytes = kStages * kStageBytes + 1024;
constexpr unsigned kTensorColumns = 128;
constexpr unsigned kScaleColumnA = 64, kScaleColumnB = 72;
constexpr unsigned kLeaderMask = 0xfeffffff;  // the address in the even CTA of the pair

struct Barriers {
  unsigned long long full[kStages];
  unsigned long long empty[kStages];
  unsigned long long done;
};

__device__ unsigned shared_address(const void* p) {
  return static_cast<unsigned>(__cvta_generic_to_shared(p));
}

__device__ unsigned cluster_rank() {
  unsigned r;
  asm volatile("mov.u32 %0, %%cluster_ctarank;" : "=r"(r));
  return r;
}

__device__ bool elect() {
  unsigned chosen;
  asm volatile("{\n.reg .pred p;\nelect.sync _|p, 0xffffffff;\nselp.b32 %0, 1, 0, p;\n}"
               : "=r"(chosen));
  return chosen != 0;
}

__device__ void init_barrier(unsigned barrier, unsigned count) {
  asm volatile("mbarrier.init.shared::cta.b64 [%0], %1;" ::"r"(barrier), "r"(count) : "memory");
}

__device__ void wait(unsigned barrier, unsigned parity) {
  asm volatile(
      "{\n.reg .pred p;\nagain:\n"
      "mbarrier.try_wait.parity.acquire.cluster.shared::cta.b64 p, [%0], %1;\n"
      "@!p bra again;\n}" ::"r"(barrier),
      "r"(parity)
      : "memory");
}

__device__ void expect(unsigned barrier, unsigned bytes) {
  asm volatile("mbarrier.arrive.expect_tx.shared::cta.b64 _, [%0], %1;" ::"r"(barrier), "r"(bytes)
               : "memory");
}

// A box into this CTA; its bytes are counted by the barrier of the pair's even CTA.
__device__ void load(unsigned to, const TensorMap& map, unsigned barrier, int x, int y, int z) {
  asm volatile(
      "cp.async.bulk.tensor.3d.cta_group::2.shared::cluster.global.tile"
      ".mbarrier::complete_tx::bytes [%0], [%1, {%3, %4, %5}], [%2];" ::"r"(to),
      "l"(&map), "r"(barrier & kLeaderMask), "r"(x), "r"(y), "r"(z)
      : "memory");
}

__device__ void load_multicast(unsigned to, const TensorMap& map, unsigned barrier, int x, int y,
                               int z, unsigned short ctas) {
  asm volatile(
      "cp.async.bulk.tensor.3d.cta_group::2.shared::cluster.global.tile"
      ".mbarrier::complete_tx::bytes.multicast::cluster [%0], [%1, {%3, %4, %5}], [%2], %6;" ::"r"(
          to),
      "l"(&map), "r"(barrier & kLeaderMask), "r"(x), "r"(y), "r"(z), "h"(ctas)
      : "memory");
}

__device__ void commit(unsigned barrier, unsigned short ctas) {
  asm volatile(
      "tcgen05.commit.cta_group::2.mbarrier::arrive::one.shared::cluster.multicast::cluster.b64 "
      "[%0], %1;" ::"r"(barrier),
      "h"(ctas)
      : "memory");
}

// Rows of 128 bytes, swizzled; groups of 8 rows follow each other.
__device__ unsigned long long matrix_descriptor(unsigned address) {
  return (address >> 4 & 0x3fff) | 64ull << 32 | 1ull << 46 | 2ull << 61;
}

// 32 rows of 16 bytes, not swizzled.
__device__ unsigned long long scale_descriptor(unsigned address) {
  return (address >> 4 & 0x3fff) | 8ull << 32 | 1ull << 46;
}

__device__ void copy_scales(unsigned column, unsigned address) {
  asm volatile("tcgen05.cp.cta_group::2.32x128b.warpx4 [%0], %1;" ::"r"(column),
               "l"(scale_descriptor(address))
               : "memory");
}

__device__ void multiply(unsigned d, unsigned long long a, unsigned long long b, unsigned idesc,
                         unsigned sa, unsigned sb, unsigned accumulate) {
  asm volatile(
      "{\n.reg .pred p;\nsetp.ne.b32 p, %6, 0;\n"
      "tcgen05.mma.cta_group::2.kind::mxf8f6f4.block_scale.scale_vec::1X "
      "[%0], %1, %2, %3, [%4], [%5], p;\n}" ::"r"(d),
      "l"(a), "l"(b), "r"(idesc), "r"(sa), "r"(sb), "r"(accumulate)
      : "memory");
}

__device__ void cluster_sync() {
  asm volatile("barrier.cluster.arrive.release.aligned;\nbarrier.cluster.wait.acquire.aligned;" ::
                   : "memory");
}

}  // namespace

extern "C" __global__ void __cluster_dims__(4, 1, 1) __launch_bounds__(kThreads, 1)
    pair_multicast(const __grid_constant__ TensorMap w, const __grid_constant__ TensorMap x,
                   const __grid_constant__ TensorMap w_scales,
                   const __grid_constant__ TensorMap x_scales, float* out, int m, int n, int k) {
  extern __shared__ char dynamic[];
  __shared__ Barriers barriers;
  __shared__ unsigned tensor_base;

  const unsigned warp = threadIdx.x / 32;
  const unsigned rank = cluster_rank();
  const unsigned half = rank & 1, pair = rank >> 1;
  const bool leader = half == 0;
  const int batch = static_cast<int>(blockIdx.z);
  const int m0 = static_cast<int>(blockIdx.y * kColumns);
  const int n0 = static_cast<int>(blockIdx.x * kRows);  // x counts CTAs, four a cluster
  const unsigned blocks = static_cast<unsigned>(k) / kTileK;
  // The same offset in every CTA of the cluster.
  const unsigned tiles = (shared_address(dynamic) + 1023) & ~1023u;
  const auto full = [&](unsigned s) { return shared_address(&barriers.full[s]); };
  const auto empty = [&](unsigned s) { return shared_address(&barriers.empty[s]); };

  if (warp == 0 && elect()) {
    for (unsigned s = 0; s < kStages; ++s) {
      init_barrier(full(s), 1);
      init_barrier(empty(s), 2);  // both pairs have read what is multicast
    }
    init_barrier(shared_address(&barriers.done), 1);
    asm volatile("fence.mbarrier_init.release.cluster;" ::: "memory");
  }
  __syncwarp();
  if (warp == 2) {
    asm volatile("tcgen05.alloc.cta_group::2.sync.aligned.shared::cta.b32 [%0], %1;" ::"r"(
                     shared_address(&tensor_base)),
                 "r"(kTensorColumns)
                 : "memory");
    asm volatile("tcgen05.relinquish_alloc_permit.cta_group::2.sync.aligned;");
  }
  asm volatile("tcgen05.fence::before_thread_sync;" ::: "memory");
  cluster_sync();
  asm volatile("tcgen05.fence::after_thread_sync;" ::: "memory");
  const unsigned tensor = *const_cast<volatile unsigned*>(&tensor_base);

  if (warp < 4) {
    asm volatile("setmaxnreg.dec.sync.aligned.u32 64;");
    if (warp == 0 && elect()) {
      for (unsigned i = 0; i < blocks + kStages; ++i) {
        const unsigned s = i % kStages;
        // After the last block only waits: nobody writes to a CTA that has ended.
        if (i >= kStages) wait(empty(s), (i / kStages + 1) & 1);
        if (i >= blocks) continue;
        const unsigned stage = tiles + s * kStageBytes;
        if (leader) expect(full(s), 2 * kStageBytes);
        const int at = static_cast<int>(i * kTileK);
        load(stage, w, full(s), at, n0, batch);
        // A quarter of the activations, into the CTAs of both pairs that hold this half.
        load_multicast(stage + kWeightBytes + pair * (kActivationBytes / 2), x, full(s), at,
                       m0 + static_cast<int>(half * 32 + pair * 16), batch,
                       static_cast<unsigned short>(5u << half));
        load(stage + kWeightBytes + kActivationBytes, w_scales, full(s), 0,
             n0 / 128 * static_cast<int>(blocks) + static_cast<int>(i), batch);
        load(stage + kWeightBytes + kActivationBytes + kScaleBytes, x_scales, full(s), 0,
             static_cast<int>(blockIdx.y * blocks + i), batch);
      }
    } else if (warp == 1 && leader && elect()) {
      const unsigned base_idesc = 1u << 23 | kColumns / 8 << 17 | kPairRows / 16 << 24;
      for (unsigned i = 0; i < blocks; ++i) {
        const unsigned s = i % kStages;
        const unsigned stage = tiles + s * kStageBytes;
        wait(full(s), i / kStages & 1);
        asm volatile("tcgen05.fence::after_thread_sync;" ::: "memory");
        copy_scales(tensor + kScaleColumnA, stage + kWeightBytes + kActivationBytes);
        copy_scales(tensor + kScaleColumnB, stage + kWeightBytes + kActivationBytes + kScaleBytes);
        for (unsigned step = 0; step < 4; ++step) {
          multiply(tensor, matrix_descriptor(stage + 32 * step),
                   matrix_descriptor(stage + kWeightBytes + 32 * step),
                   base_idesc | step << 29 | step << 4, tensor + kScaleColumnA,
                   tensor + kScaleColumnB, i + step != 0);
        }
        commit(empty(s), 0xf);
      }
      commit(shared_address(&barriers.done), static_cast<unsigned short>(3u << (2 * pair)));
    }
  } else {
    asm volatile("setmaxnreg.inc.sync.aligned.u32 128;");
    wait(shared_address(&barriers.done), 0);
    asm volatile("tcgen05.fence::after_thread_sync;" ::: "memory");
    const unsigned lane_group = (warp % 4) * 32;
    const int row = n0 + static_cast<int>(lane_group + threadIdx.x % 32);
    for (unsigned column = 0; column < kColumns; column += 8) {
      float v[8];
      asm volatile(
          "tcgen05.ld.sync.aligned.32x32b.x8.b32 {%0, %1, %2, %3, %4, %5, %6, %7}, [%8];\n"
          "tcgen05.wait::ld.sync.aligned;"
          : "=f"(v[0]), "=f"(v[1]), "=f"(v[2]), "=f"(v[3]), "=f"(v[4]), "=f"(v[5]), "=f"(v[6]),
            "=f"(v[7])
          : "r"(tensor + (lane_group << 16) + column)
          : "memory");
      for (int i = 0; i < 8; ++i) {
        const int column_of_x = m0 + static_cast<int>(column) + i;
        if (column_of_x < m && row < n) {
          out[(static_cast<long long>(batch) * m + column_of_x) * n + row] = v[i];
        }
      }
    }
    asm volatile("tcgen05.fence::before_thread_sync;" ::: "memory");
  }
  __syncwarp();
  cluster_sync();
  asm volatile("tcgen05.fence::after_thread_sync;" ::: "memory");
  if (warp == 2) {
    asm volatile("tcgen05.dealloc.cta_group::2.sync.aligned.b32 %0, %1;" ::"r"(tensor),
                 "r"(kTensorColumns));
  }
}

static_assert(kDynamicBytes < 227 * 1024, "fits");
