// What generated kernels share: formats of two bytes, complex numbers, and sums of squares by range.
// It includes nothing, so that a compiler of C++ can take it too once it knows CUDA's few words.

typedef long long i64;

// ---- Formats of two bytes: read as float, written from float or double to the nearest, ties to even

struct f16 { unsigned short bits; };
struct bf16 { unsigned short bits; };

__device__ inline float to_odd(double x) {
    // The narrower format then rounds as if it saw all of x.
    float nearest = (float)x;
    if (x != x || (double)nearest == x) return nearest;
    unsigned bits = __float_as_uint(nearest);
    if (fabs((double)nearest) > fabs(x)) bits -= 1;
    return __uint_as_float(bits | 1);
}

__device__ inline float to_odd(float x) { return x; }

__device__ inline float widened(f16 x) {
    unsigned sign = (unsigned)(x.bits & 0x8000) << 16, rest = x.bits & 0x7fff;
    if (rest >= 0x7c00) return __uint_as_float(sign | 0x7f800000 | (rest & 0x3ff) << 13);
    if (rest < 0x400) {
        float magnitude = (float)rest * 5.9604644775390625e-8f;
        return sign ? -magnitude : magnitude;
    }
    return __uint_as_float(sign | ((rest << 13) + 0x38000000));
}

__device__ inline float widened(bf16 x) { return __uint_as_float((unsigned)x.bits << 16); }

template <typename T> __device__ inline void narrow(T x, f16* place) {
    unsigned bits = __float_as_uint(to_odd(x)), sign = bits >> 16 & 0x8000, rest = bits & 0x7fffffff, found;
    if (rest > 0x7f800000) {
        found = 0x7e00;
    } else if (rest >= 0x47800000) {
        found = 0x7c00;
    } else if (rest >= 0x38800000) {
        found = (rest + 0xfff + (rest >> 13 & 1) - 0x38000000) >> 13;
    } else {
        // Adding 2^23 rounds to a whole number of the smallest steps.
        found = (unsigned)((__uint_as_float(rest) * 16777216.0f + 8388608.0f) - 8388608.0f);
    }
    place->bits = (unsigned short)(sign | found);
}

template <typename T> __device__ inline void narrow(T x, bf16* place) {
    unsigned bits = __float_as_uint(to_odd(x));
    if ((bits & 0x7fffffff) > 0x7f800000) place->bits = (unsigned short)(bits >> 16 | 0x40);
    else place->bits = (unsigned short)((bits + 0x7fff + (bits >> 16 & 1)) >> 16);
}

template <typename T> __device__ inline f16 as_f16(T x) { f16 found; narrow(x, &found); return found; }
template <typename T> __device__ inline bf16 as_bf16(T x) { bf16 found; narrow(x, &found); return found; }

// ---- Complex numbers, with NumPy's formulas

template <typename T> struct complex_of {
    T re, im;
    __device__ complex_of() {}
    __device__ complex_of(T re, T im) : re(re), im(im) {}
    __device__ complex_of(T re) : re(re), im(0) {}
    template <typename U> __device__ explicit complex_of(const complex_of<U>& x) : re((T)x.re), im((T)x.im) {}
};
typedef complex_of<float> c8;
typedef complex_of<double> c16;

template <typename T> __device__ inline complex_of<T> operator+(complex_of<T> x, complex_of<T> y) {
    return complex_of<T>(x.re + y.re, x.im + y.im);
}
template <typename T> __device__ inline complex_of<T> operator-(complex_of<T> x, complex_of<T> y) {
    return complex_of<T>(x.re - y.re, x.im - y.im);
}
template <typename T> __device__ inline complex_of<T> operator-(complex_of<T> x) {
    return complex_of<T>(-x.re, -x.im);
}
template <typename T> __device__ inline complex_of<T> operator*(complex_of<T> x, complex_of<T> y) {
    return complex_of<T>(x.re * y.re - x.im * y.im, x.re * y.im + x.im * y.re);
}
template <typename T> __device__ inline complex_of<T> operator/(complex_of<T> x, complex_of<T> y) {
    T re = y.re < 0 ? -y.re : y.re, im = y.im < 0 ? -y.im : y.im;
    if (re >= im) {
        if (re == 0 && im == 0) return complex_of<T>(x.re / re, x.im / re);
        T ratio = y.im / y.re, scale = (T)1 / (y.re + y.im * ratio);
        return complex_of<T>((x.re + x.im * ratio) * scale, (x.im - x.re * ratio) * scale);
    }
    T ratio = y.re / y.im, scale = (T)1 / (y.im + y.re * ratio);
    return complex_of<T>((x.re * ratio + x.im) * scale, (x.im * ratio - x.re) * scale);
}
template <typename T> __device__ inline bool operator==(complex_of<T> x, complex_of<T> y) {
    return x.re == y.re && x.im == y.im;
}
template <typename T> __device__ inline bool operator!=(complex_of<T> x, complex_of<T> y) {
    return !(x == y);
}
__device__ inline float magnitude(c8 x) { return hypotf(x.re, x.im); }
__device__ inline double magnitude(c16 x) { return hypot(x.re, x.im); }
template <typename T> __device__ inline complex_of<T> sign_of(complex_of<T> x) {
    T size = magnitude(x);
    return size == 0 ? complex_of<T>(0) : complex_of<T>(x.re / size, x.im / size);
}

// ---- Real numbers

__device__ inline float magnitude(float x) { return fabsf(x); }
__device__ inline double magnitude(double x) { return fabs(x); }
__device__ inline int magnitude(int x) { return x < 0 ? -x : x; }
__device__ inline i64 magnitude(i64 x) { return x < 0 ? -x : x; }

// NaN where either is, and NumPy's choice between zeros.
template <typename T> __device__ inline T least(T x, T y) { return x < y || x != x ? x : y; }
template <typename T> __device__ inline T greatest(T x, T y) { return x > y || x != x ? x : y; }
template <typename T> __device__ inline T sign_of(T x) { return x > 0 ? (T)1 : x < 0 ? (T)-1 : x == 0 ? (T)0 : x; }

template <typename T> __device__ inline bool is_nan(T x) { return x != x; }
template <typename T> __device__ inline bool is_finite(T x) { return x - x == 0; }
template <typename T> __device__ inline bool is_nan(complex_of<T> x) { return is_nan(x.re) || is_nan(x.im); }
template <typename T> __device__ inline bool is_finite(complex_of<T> x) {
    return is_finite(x.re) && is_finite(x.im);
}

// ---- Sums of squares by range: big, middle and small numbers, each in a scale of its own

// In double: squares of float are exact there. Of double itself, what each addition rounds off is kept.
struct exact_sum {
    double total, rest;
    __device__ exact_sum() : total(0), rest(0) {}
    __device__ void add(float square_root) { total += (double)square_root * (double)square_root; }
    __device__ void add(double square_root) { keep(square_root * square_root); }
    __device__ void keep(double term) {
        double sum = total + term, back = sum - total;
        rest += (total - (sum - back)) + (term - back);
        total = sum;
    }
    // Of an infinite total the rest is no number.
    __device__ double value() const { return is_finite(total) ? total + rest : total; }
};

struct range_limits { double big_above, big_factor, small_below, small_factor; };

struct range_sums {
    exact_sum big, middle, small;
    template <typename T> __device__ void add(T x, const range_limits& limits) {
        T size = magnitude(x);
        if (size > (T)limits.big_above) big.add(x * (T)limits.big_factor);
        else if (size < (T)limits.small_below) small.add(x * (T)limits.small_factor);
        else middle.add(x);
    }
    template <typename T> __device__ void add(complex_of<T> x, const range_limits& limits) {
        add(x.re, limits);
        add(x.im, limits);
    }
};

// The sum over the threads of a block, whose number is a power of two.
__device__ inline double block_sum(double value, double* scratch) {
    unsigned thread = threadIdx.x;
    scratch[thread] = value;
    __syncthreads();
    for (unsigned half = blockDim.x / 2; half > 0; half /= 2) {
        if (thread < half) scratch[thread] += scratch[thread + half];
        __syncthreads();
    }
    double sum = scratch[0];
    __syncthreads();
    return sum;
}

__device__ inline void store_block_sums(const range_sums& sums, double* place, double* scratch) {
    double big = block_sum(sums.big.value(), scratch);
    double middle = block_sum(sums.middle.value(), scratch);
    double small = block_sum(sums.small.value(), scratch);
    if (threadIdx.x == 0) {
        place[0] = big;
        place[1] = middle;
        place[2] = small;
    }
}

// The same of the threads that are equal modulo width, a power of two: each gets its own sum.
__device__ inline double line_sum(double value, unsigned width, double* scratch) {
    unsigned thread = threadIdx.x;
    scratch[thread] = value;
    __syncthreads();
    for (unsigned half = blockDim.x / 2; half >= width; half /= 2) {
        if (thread < half) scratch[thread] += scratch[thread + half];
        __syncthreads();
    }
    double sum = scratch[thread % width];
    __syncthreads();
    return sum;
}
