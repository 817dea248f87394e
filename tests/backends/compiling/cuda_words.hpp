// The words of CUDA that generated kernels use, for a compiler of C++.
#include <barrier>
#include <cmath>
#include <cstring>
#include <thread>
#include <vector>

#define __global__
#define __device__
#define __shared__ static

struct Index { unsigned x; };
static thread_local Index threadIdx;
static Index blockIdx, blockDim;
static std::barrier<>* waiting = nullptr;

inline void __syncthreads() { if (waiting) waiting->arrive_and_wait(); }

inline unsigned __float_as_uint(float x) { unsigned bits; std::memcpy(&bits, &x, 4); return bits; }
inline float __uint_as_float(unsigned bits) { float x; std::memcpy(&x, &bits, 4); return x; }

// Block after block, so that one memory is enough for what the threads of a block share.
template <typename Kernel> void run_all(unsigned blocks, unsigned threads, Kernel kernel) {
    blockDim.x = threads;
    for (unsigned block = 0; block < blocks; block++) {
        blockIdx.x = block;
        if (threads == 1) {
            threadIdx.x = 0;
            kernel();
            continue;
        }
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
        waiting = nullptr;
    }
}
