// The words of CUDA that generated kernels use, for a compiler of C++.
#include <math.h>
#include <string.h>

#define __global__
#define __device__
#define __shared__ static

struct Index { unsigned x; };
static thread_local Index threadIdx;
static Index blockIdx, blockDim;

inline unsigned __float_as_uint(float x) { unsigned bits; memcpy(&bits, &x, 4); return bits; }
inline float __uint_as_float(unsigned bits) { float x; memcpy(&x, &bits, 4); return x; }

// Block after block, so that one memory is enough for what the threads of a block share.
#ifdef ONE_THREAD
inline void __syncthreads() {}

template <typename Kernel> void run_all(unsigned blocks, unsigned threads, Kernel kernel) {
    blockDim.x = 1;
    for (blockIdx.x = 0; blockIdx.x < blocks; blockIdx.x++) kernel();
}
#else
#include <barrier>
#include <thread>
#include <vector>

static std::barrier<>* waiting;

inline void __syncthreads() { waiting->arrive_and_wait(); }

template <typename Kernel> void run_all(unsigned blocks, unsigned threads, Kernel kernel) {
    blockDim.x = threads;
    for (blockIdx.x = 0; blockIdx.x < blocks; blockIdx.x++) {
        std::barrier<> barrier(threads);
        waiting = &barrier;
        std::vector<std::thread> running;
        for (unsigned thread = 0; thread < threads; thread++) {
            running.emplace_back([&, thread] {
                threadIdx.x = thread;
                kernel();
                barrier.arrive_and_drop();
            });
        }
        for (auto& each : running) each.join();
    }
}
#endif
