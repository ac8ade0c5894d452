// Head of the sources of nets: T is the type in which activations and their gradients are stored. -DSTORE=0 selects
// float32, 1 bfloat16, 2 float16; arithmetic is in float32 or wider. No header of CUDA is needed.
#ifndef STORE
#define STORE 0
#endif

#if STORE == 0
typedef float T;
__device__ float wide(float x) { return x; }
__device__ float narrow(float x) { return x; }
#else
struct T { unsigned short bits; };
#if defined SIM_SOURCE  // the stand-in has no PTX
__device__ float wide(T x) { return STORE == 1 ? sim::fromBFloat16(x.bits) : sim::fromHalf(x.bits); }
__device__ T narrow(float x) { return {STORE == 1 ? sim::toBFloat16(x) : sim::toHalf(x)}; }
#elif STORE == 1
__device__ inline float wide(T x) { return __uint_as_float((unsigned)x.bits << 16); }
__device__ inline T narrow(float x) {
	T y;
#if __CUDA_ARCH__ >= 800
	asm("cvt.rn.bf16.f32 %0, %1;" : "=h"(y.bits) : "f"(x));
#else  // rounds to even; a NaN becomes the quiet one
	unsigned u = __float_as_uint(x);
	y.bits = x == x ? (u + 0x7fff + (u >> 16 & 1)) >> 16 : 0x7fff;
#endif
	return y;
}
#else
__device__ inline float wide(T x) {
	float y;
	asm("cvt.f32.f16 %0, %1;" : "=f"(y) : "h"(x.bits));
	return y;
}
__device__ inline T narrow(float x) {
	T y;
	asm("cvt.rn.f16.f32 %0, %1;" : "=h"(y.bits) : "f"(x));
	return y;
}
#endif
#endif

// words reads 16 aligned bytes at once, which the compiler does not always see.
__device__ void words(const void *p, unsigned (&w)[4]) {
#if defined SIM_SOURCE
	for (int j = 0; j < 4; j++) w[j] = ((const unsigned *)p)[j];
#else
	asm("ld.global.v4.u32 {%0, %1, %2, %3}, [%4];" : "=r"(w[0]), "=r"(w[1]), "=r"(w[2]), "=r"(w[3]) : "l"(p));
#endif
}

// V elements are one memory access, aligned to its size. Elements of 16 bits are taken by pairs, the first in the low
// half of a word.
constexpr int V = 16 / sizeof(T);
template <int N> struct alignas(N * sizeof(T)) Pack { T v[N]; };
#if STORE == 0
template <int N> struct alignas(4 * N) Words { float v[N]; };
template <int N> __device__ void unpack(const Words<N> &k, float (&x)[N]) {
#pragma unroll
	for (int j = 0; j < N; j++) x[j] = k.v[j];
}
template <int N> __device__ Words<N> pack(const float (&x)[N]) {
	Words<N> k;
#pragma unroll
	for (int j = 0; j < N; j++) k.v[j] = x[j];
	return k;
}
#else
#if defined SIM_SOURCE
__device__ void widen(unsigned w, float &low, float &high) {
	low = wide(T{(unsigned short)w}), high = wide(T{(unsigned short)(w >> 16)});
}
#elif STORE == 1
__device__ inline void widen(unsigned w, float &low, float &high) {
	low = __uint_as_float(w << 16), high = __uint_as_float(w & 0xffff0000);
}
#else
__device__ inline void widen(unsigned w, float &low, float &high) {
	T a, b;
	asm("mov.b32 {%0, %1}, %2;" : "=h"(a.bits), "=h"(b.bits) : "r"(w));
	low = wide(a), high = wide(b);
}
#endif
__device__ unsigned narrow(float low, float high) {
#if !defined SIM_SOURCE && __CUDA_ARCH__ >= 800
	unsigned w;
#if STORE == 1
	asm("cvt.rn.bf16x2.f32 %0, %1, %2;" : "=r"(w) : "f"(high), "f"(low));
#else
	asm("cvt.rn.f16x2.f32 %0, %1, %2;" : "=r"(w) : "f"(high), "f"(low));
#endif
	return w;
#else
	return narrow(low).bits | (unsigned)narrow(high).bits << 16;
#endif
}
template <int N> struct alignas(2 * N) Words { unsigned w[N / 2]; };
template <> struct Words<1> { T v; };
template <int N> __device__ void unpack(const Words<N> &k, float (&x)[N]) {
#pragma unroll
	for (int j = 0; j < N / 2; j++) widen(k.w[j], x[2 * j], x[2 * j + 1]);
}
__device__ void unpack(const Words<1> &k, float (&x)[1]) { x[0] = wide(k.v); }
template <int N> __device__ Words<N> pack(const float (&x)[N]) {
	Words<N> k;
#pragma unroll
	for (int j = 0; j < N / 2; j++) k.w[j] = narrow(x[2 * j], x[2 * j + 1]);
	return k;
}
__device__ Words<1> pack(const float (&x)[1]) { return {narrow(x[0])}; }
#endif
template <int N> __device__ Words<N> fetch(const T *p) {
	if constexpr (N == V) {
		union {
			unsigned w[4];
			Words<N> k;
		} u;
		words(p, u.w);
		return u.k;
	} else {
		return *(const Words<N> *)p;
	}
}
template <int N> __device__ void load(const T *p, float (&x)[N]) { unpack(fetch<N>(p), x); }
template <int N> __device__ void store(T *p, const float (&x)[N]) { *(Words<N> *)p = pack(x); }
__device__ bool packed(const void *p) { return (unsigned long long)p % 16 == 0; }

#define EACH(i, n) \
	for (long long i = (long long)blockIdx.x * blockDim.x + threadIdx.x; i < (n); \
		i += (long long)gridDim.x * blockDim.x)

// elements calls f for n elements, V at a time if possible, with the number and the first of them.
template <int N> struct Width { static constexpr int value = N; };
#define WIDTH(w) constexpr int N = decltype(w)::value
template <class F> __device__ void elements(long long n, bool possible, F f) {
	long long packs = possible ? n / V : 0;
	EACH(i, packs) f(Width<V>{}, i * V);
	EACH(i, n - packs * V) f(Width<1>{}, packs * V + i);
}

// A Divisor divides numbers below 2³¹ by a multiplication.
struct Divisor { unsigned by, factor, shift; };
__device__ Divisor divisor(unsigned by) {
	unsigned bits = 1;
	while (1ull << bits < by) bits++;
	return {by, (unsigned)(((1ull << (31 + bits)) + by - 1) / by), bits - 1};
}
__device__ unsigned divided(unsigned n, Divisor d) {
	unsigned q = __umulhi(n, d.factor) >> d.shift;
	return d.by == 1 ? n : q;  // whose factor takes 33 bits
}
// split returns n / d and leaves the rest in n.
__device__ unsigned split(unsigned &n, Divisor d) {
	unsigned q = divided(n, d);
	n -= q * d.by;
	return q;
}

// The loss scale, a power of 2 that keeps 16-bit gradients from vanishing, and its inverse; a null scale is 1.
__device__ float scaleOf(const float *scale) { return scale ? scale[0] : 1; }
__device__ float unscaleOf(const float *scale) { return scale ? scale[1] : 1; }
