// Turns CUDA C into C++17 for the CPU: the stand-in's NVRTC puts this text before a source and compiles it with g++ to
// a shared object, which the stand-in driver loads and runs on its engine (engine.cc). One thread of a grid runs at a
// time, so a block's memory is plain static memory.
#ifndef SIM_DEVICE_H
#define SIM_DEVICE_H
#include <math.h>
#include <stdint.h>
#include <string.h>

#include <type_traits>
#include <utility>

struct uint3 { unsigned x, y, z; };
struct dim3 {
	unsigned x, y, z;
	constexpr dim3(unsigned x = 1, unsigned y = 1, unsigned z = 1) : x(x), y(y), z(z) {}
};

// Shared by the engine and a compiled source. Change it together with simAbi.
constexpr unsigned simAbi = 3;
struct SimState {
	uint3 thread, block;
	dim3 blockDim, gridDim;
	void *dynamic;  // shared memory asked for at launch
};
enum SimWait { SimBlock, SimWarp };
enum SimAccess { SimRead = 0, SimWrite = 1, SimUnaligned = 2 };
struct SimEngine {
	void (*wait)(SimWait what, const void *where);                          // until the others have come
	uint64_t (*exchange)(uint64_t bits, unsigned lane, const void *where);  // another lane's bits
	unsigned (*lane)();
	[[noreturn]] void (*trap)();
	// Of sources compiled with SIM_CHECK, see check.cc.
	void (*access)(const void *at, unsigned bytes, int what);
	void (*atomic)(const void *at, unsigned bytes);
	void (*fence)();
};
struct SimKernel {
	const char *name;
	void (*body)(void **parameters);
	unsigned parameters;
	const size_t *sizes;
	// of each parameter: the type that it points to, f float, d double, h 16 bits, p others; - for integers, . for others
	const char *types;
};
struct SimImage {
	unsigned abi;
	SimState *state;
	const SimEngine **engine;
	const SimKernel *kernels;
	unsigned count;
	char *shared, *sharedEnd;  // static shared memory of all kernels
};

// Floats of 16 bits, and of 32 with 11 significant ones as TensorFloat-32 has them; to the nearest, ties to even.
namespace sim {
inline uint32_t floatBits(float f) { uint32_t u; memcpy(&u, &f, 4); return u; }
inline float bitsFloat(uint32_t u) { float f; memcpy(&f, &u, 4); return f; }
inline float tf32(float f) {
	uint32_t u = floatBits(f);
	return (u & 0x7f800000) == 0x7f800000 ? f : bitsFloat((u + 0xfff + (u >> 13 & 1)) & ~0x1fffu);
}
inline float fromBFloat16(uint16_t x) { return bitsFloat((uint32_t)x << 16); }
inline uint16_t toBFloat16(float f) {
	uint32_t u = floatBits(f);
	return f != f ? 0x7fff : (u + 0x7fff + (u >> 16 & 1)) >> 16;
}
inline float fromHalf(uint16_t x) {
	uint32_t u = (uint32_t)(x & 0x7fff) << 13, exponent = u & 0x0f800000;
	u += 112u << 23;
	if (exponent == 0x0f800000) u += 112u << 23;                                             // infinite or NaN
	if (exponent == 0) u = floatBits(bitsFloat(u + (1u << 23)) - bitsFloat(113u << 23));  // subnormal
	return bitsFloat(u | (uint32_t)(x & 0x8000) << 16);
}
inline uint16_t toHalf(float f) {
	uint32_t u = floatBits(f), sign = u >> 16 & 0x8000, half;
	u &= 0x7fffffff;
	if (u >= 143u << 23) half = f != f ? 0x7fff : 0x7c00;
	else if (u < 113u << 23) half = floatBits(bitsFloat(u) + bitsFloat(126u << 23)) - (126u << 23);
	else half = (u - (112u << 23) + 0xfff + (u >> 13 & 1)) >> 13;
	return half | sign;
}
}  // namespace sim

#ifdef SIM_SOURCE  // the rest is for CUDA C alone

struct alignas(8) float2 { float x, y; };
struct alignas(16) float4 { float x, y, z, w; };
struct alignas(16) double2 { double x, y; };

#define __global__
#define __device__ static inline
#define __host__
#define __forceinline__ inline __attribute__((always_inline))
#define __noinline__ __attribute__((noinline))
#define __restrict__ __restrict
#define __launch_bounds__(...)
#define __constant__ static const
#define __shared__ static __attribute__((section("sim_shared")))
// Where CUDA C has extern __shared__ T name[]:
#define DYNAMIC_SHARED(T, name) T *name = (T *)sim::state.dynamic
#define warpSize 32

#ifdef SIM_CHECK
#define SIM_UNCHECKED __attribute__((no_sanitize("thread")))
#else
#define SIM_UNCHECKED
#endif

namespace sim {
static SimState state;
static const SimEngine *engine;

template <class T> uint64_t bits(T v) {
	static_assert(sizeof(T) <= 8);
	uint64_t u = 0;
	memcpy(&u, &v, sizeof v);
	return u;
}
template <class T> T shuffle(T v, unsigned lane, const void *where) {
	uint64_t u = engine->exchange(bits(v), lane, where);
	memcpy(&v, &u, sizeof v);
	return v;
}

template <class A> constexpr char typeOf() {
	using P = std::remove_cv_t<std::remove_pointer_t<A>>;
	if (!std::is_pointer_v<A>) return std::is_floating_point_v<A> ? '.' : '-';
	return std::is_same_v<P, float> ? 'f' : std::is_same_v<P, double> ? 'd' : sizeof(P) == 2 ? 'h' : 'p';
}

template <auto K> struct Entry;
template <class... A, void (*K)(A...)> struct Entry<K> {
	template <size_t... I> SIM_UNCHECKED static void call(void **p, std::index_sequence<I...>) { K(*(std::remove_cv_t<A> *)p[I]...); }
	SIM_UNCHECKED static void body(void **p) { call(p, std::index_sequence_for<A...>{}); }
	static constexpr unsigned count = sizeof...(A);
	static constexpr size_t sizes[sizeof...(A) + 1] = {sizeof(A)...};
	static constexpr char types[sizeof...(A) + 1] = {typeOf<A>()...};
};
}  // namespace sim

#define threadIdx (sim::state.thread)
#define blockIdx (sim::state.block)
#define blockDim (sim::state.blockDim)
#define gridDim (sim::state.gridDim)

// An address that differs at each place in the source.
#define SIM_HERE __extension__({ static const char here = 0; (const void *)&here; })
#define __syncthreads() sim::engine->wait(SimBlock, SIM_HERE)
#define __syncwarp(...) sim::engine->wait(SimWarp, SIM_HERE)
#define __shfl_sync(m, v, l) sim::shuffle((v), (l) & 31, SIM_HERE)
#define __shfl_xor_sync(m, v, x) sim::shuffle((v), sim::engine->lane() ^ (x), SIM_HERE)
#define __shfl_down_sync(m, v, d) sim::shuffle((v), sim::engine->lane() + (d) < 32 ? sim::engine->lane() + (d) : sim::engine->lane(), SIM_HERE)
#define __shfl_up_sync(m, v, d) sim::shuffle((v), sim::engine->lane() >= (unsigned)(d) ? sim::engine->lane() - (d) : sim::engine->lane(), SIM_HERE)
#define __trap() sim::engine->trap()

// One thread runs at a time and switches at barriers only.
#ifdef SIM_CHECK
#define SIM_ATOMIC SIM_UNCHECKED __attribute__((noinline))
#define SIM_TOUCH(p) sim::engine->atomic(p, sizeof *(p))
SIM_ATOMIC inline void __threadfence() { sim::engine->fence(); }
#else
#define SIM_ATOMIC
#define SIM_TOUCH(p) (void)0
inline void __threadfence() {}
#endif
template <class T> SIM_ATOMIC inline T atomicAdd(T *p, T v) { SIM_TOUCH(p); T old = *p; *p = old + v; return old; }
template <class T> SIM_ATOMIC inline T atomicMax(T *p, T v) { SIM_TOUCH(p); T old = *p; *p = old < v ? v : old; return old; }
template <class T> SIM_ATOMIC inline T atomicMin(T *p, T v) { SIM_TOUCH(p); T old = *p; *p = v < old ? v : old; return old; }
template <class T> SIM_ATOMIC inline T atomicExch(T *p, T v) { SIM_TOUCH(p); T old = *p; *p = v; return old; }
template <class T> SIM_ATOMIC inline T atomicCAS(T *p, T is, T v) { SIM_TOUCH(p); T old = *p; if (old == is) *p = v; return old; }

#ifdef SIM_CHECK
// Called before each access by code that g++ compiles with -fsanitize=thread: our own functions. While an image is
// loaded there is no engine.
#define SIM_HOOK extern "C" SIM_UNCHECKED __attribute__((visibility("hidden"), used)) inline
#define SIM_HOOKS(n)                                                                                              \
	SIM_HOOK void __tsan_read##n(void *p) { if (sim::engine) sim::engine->access(p, n, SimRead); }                                 \
	SIM_HOOK void __tsan_write##n(void *p) { if (sim::engine) sim::engine->access(p, n, SimWrite); }                               \
	SIM_HOOK void __tsan_unaligned_read##n(void *p) { if (sim::engine) sim::engine->access(p, n, SimRead | SimUnaligned); }        \
	SIM_HOOK void __tsan_unaligned_write##n(void *p) { if (sim::engine) sim::engine->access(p, n, SimWrite | SimUnaligned); }
SIM_HOOKS(1) SIM_HOOKS(2) SIM_HOOKS(4) SIM_HOOKS(8) SIM_HOOKS(16)
SIM_HOOK void __tsan_read_range(void *p, size_t n) { if (sim::engine) sim::engine->access(p, n, SimRead | SimUnaligned); }
SIM_HOOK void __tsan_write_range(void *p, size_t n) { if (sim::engine) sim::engine->access(p, n, SimWrite | SimUnaligned); }
SIM_HOOK void __tsan_init() {}
SIM_HOOK void __tsan_func_entry(void *) {}
SIM_HOOK void __tsan_func_exit() {}
#endif

template <class T> inline T __ldg(const T *p) { return *p; }
inline float rsqrtf(float x) { return 1 / sqrtf(x); }
inline unsigned __umulhi(unsigned a, unsigned b) { return (unsigned long long)a * b >> 32; }
inline unsigned __float_as_uint(float f) { unsigned u; memcpy(&u, &f, 4); return u; }
inline float __uint_as_float(unsigned u) { float f; memcpy(&f, &u, 4); return f; }
inline long long __double_as_longlong(double d) { long long u; memcpy(&u, &d, 8); return u; }
inline double __longlong_as_double(long long u) { double d; memcpy(&d, &u, 8); return d; }
template <class A, class B> inline std::common_type_t<A, B> min(A a, B b) { return b < a ? b : a; }
template <class A, class B> inline std::common_type_t<A, B> max(A a, B b) { return a < b ? b : a; }

extern "C" {
extern char __start_sim_shared[] __attribute__((weak, visibility("hidden")));
extern char __stop_sim_shared[] __attribute__((weak, visibility("hidden")));
}
// The compiler driver ends a source with SIM_KERNELS(SIM_KERNEL(name), …).
#define SIM_KERNEL(k) {#k, sim::Entry<&k>::body, sim::Entry<&k>::count, sim::Entry<&k>::sizes, sim::Entry<&k>::types}
#define SIM_KERNELS(...)                                                                                          \
	static const SimKernel simKernels[] = {__VA_ARGS__};                                                          \
	extern "C" __attribute__((visibility("default"))) const SimImage simImage = {simAbi, &sim::state, &sim::engine, simKernels,                          \
	                                      sizeof simKernels / sizeof *simKernels, __start_sim_shared, __stop_sim_shared};
#endif
#endif
