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

// V elements are one memory access, aligned to its size.
constexpr int V = 16 / sizeof(T);
template <int N> struct alignas(N * sizeof(T)) Pack { T v[N]; };
template <int N> __device__ void load(const T *p, float (&x)[N]) {
	Pack<N> k = *(const Pack<N> *)p;
#pragma unroll
	for (int j = 0; j < N; j++) x[j] = wide(k.v[j]);
}
template <int N> __device__ void store(T *p, const float (&x)[N]) {
	Pack<N> k;
#pragma unroll
	for (int j = 0; j < N; j++) k.v[j] = narrow(x[j]);
	*(Pack<N> *)p = k;
}
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

// The loss scale, a power of 2 that keeps 16-bit gradients from vanishing, and its inverse; a null scale is 1.
__device__ float scaleOf(const float *scale) { return scale ? scale[0] : 1; }
__device__ float unscaleOf(const float *scale) { return scale ? scale[1] : 1; }
