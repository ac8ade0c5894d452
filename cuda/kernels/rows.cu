// Layer normalisation and softmax of rows [rows, width]: one read and one write. blockDim.x threads, a power of 2, share
// a row, and blockDim.y rows a block. A thread holds up to `held` of its row's elements in registers, V at a time if
// possible. Sums are float32, always in the same order.

constexpr int threads = 256;
constexpr int held = 8, few = 4;
struct alignas(16) Pack4 { float v[4]; };

// across combines the values of the threads of a row and returns the result to each of them.
template <class F> __device__ float across(float v, F combine) {
	__shared__ float warps[threads / 32];
	if (blockDim.x < 32) {
#pragma unroll 1
		for (int far = blockDim.x / 2; far > 0; far /= 2) v = combine(v, __shfl_xor_sync(0xffffffffu, v, far));
		return v;
	}
#pragma unroll
	for (int far = 16; far > 0; far /= 2) v = combine(v, __shfl_xor_sync(0xffffffffu, v, far));
	if (blockDim.x == 32) return v;
	int count = blockDim.x / 32, first = threadIdx.y * count;
	if (threadIdx.x % 32 == 0) warps[first + threadIdx.x / 32] = v;
	__syncthreads();
	v = warps[first];
#pragma unroll 1
	for (int i = 1; i < count; i++) v = combine(v, warps[first + i]);
	__syncthreads();
	return v;
}
__device__ float summed(float v) {
	return across(v, [](float a, float b) { return a + b; });
}
// summed replaces both by their sums.
__device__ void summed(float &a, float &b) {
	__shared__ float warps[2 * threads / 32];
	if (blockDim.x < 32) {
		a = summed(a), b = summed(b);
		return;
	}
#pragma unroll
	for (int far = 16; far > 0; far /= 2) {
		a += __shfl_xor_sync(0xffffffffu, a, far);
		b += __shfl_xor_sync(0xffffffffu, b, far);
	}
	if (blockDim.x == 32) return;
	int count = blockDim.x / 32, first = threadIdx.y * count;
	if (threadIdx.x % 32 == 0) {
		warps[2 * (first + threadIdx.x / 32)] = a;
		warps[2 * (first + threadIdx.x / 32) + 1] = b;
	}
	__syncthreads();
	a = warps[2 * first], b = warps[2 * first + 1];
#pragma unroll 1
	for (int i = 1; i < count; i++) a += warps[2 * (first + i)], b += warps[2 * (first + i) + 1];
	__syncthreads();
}
__device__ float largest(float v) {
	return across(v, [](float a, float b) { return fmaxf(a, b); });
}

// mine calls f for each of the thread's packs that it holds, with its number and its first column.
template <int N, int H = held, class F> __device__ void mine(int width, F f) {
#pragma unroll
	for (int j = 0; j < H / N; j++) {
		int c = (j * blockDim.x + threadIdx.x) * N;
		if (c < width) f(j, c);
	}
}
// rest calls f for the thread's packs that it does not hold.
template <int N, int H = held, class F> __device__ void rest(int width, F f) {
#pragma unroll 1
	for (int c = (H / N * blockDim.x + threadIdx.x) * N; c < width; c += blockDim.x * N) f(c);
}
// eachRow calls f for the block's rows, the thread's own and its columns: none where there is no further row. All
// threads call f equally often.
template <class F> __device__ void eachRow(long long rows, int width, F f) {
#pragma unroll 1
	for (long long r = (long long)blockIdx.x * blockDim.y; r < rows; r += (long long)gridDim.x * blockDim.y) {
		long long own = r + threadIdx.y;
		f(own, own < rows ? width : 0);
	}
}

// Input is rows of 16 bits or, where narrow is null, of float32.
struct Input {
	const T *narrow;
	const float *wide;
};
template <int N> __device__ void read(Input x, long long at, float (&v)[N]) {
	if (x.narrow) return load(x.narrow + at, v);
	if constexpr (N == 1) {
		v[0] = x.wide[at];
	} else {
#pragma unroll
		for (int i = 0; i < N; i += 4) {
			Pack4 k = *(const Pack4 *)(x.wide + at + i);
#pragma unroll
			for (int j = 0; j < 4; j++) v[i + j] = k.v[j];
		}
	}
}

// normal centres a row of which the thread holds v, and returns 1/√(var + eps).
template <int N, int H> __device__ float normal(float (&v)[H / N][N], int own, int width, double eps) {
	float sum = 0;
	mine<N, H>(own, [&](int j, int) {
#pragma unroll
		for (int i = 0; i < N; i++) sum += v[j][i];
	});
	float mean = summed(sum) / width, squares = 0;
	mine<N, H>(own, [&](int j, int) {
#pragma unroll
		for (int i = 0; i < N; i++) {
			v[j][i] -= mean;
			squares += v[j][i] * v[j][i];
		}
	});
	return 1 / sqrtf(summed(squares) / width + (float)eps);
}

// nn_layer_norm normalises rows of at most held·blockDim.x elements. y may be x.
template <int N> __device__ void layerNorm(Input x, const float *scale, const float *bias, T *y, long long rows,
	int width, double eps) {
	float a[held / N][N], b[held / N][N];
	mine<N>(width, [&](int j, int c) {
#pragma unroll
		for (int i = 0; i < N; i++) a[j][i] = scale[c + i], b[j][i] = bias[c + i];
	});
	eachRow(rows, width, [&](long long r, int own) {
		float v[held / N][N];
		mine<N>(own, [&](int j, int c) { read(x, r * width + c, v[j]); });
		float inverse = normal<N, held>(v, own, width, eps);
		mine<N>(own, [&](int j, int c) {
#pragma unroll
			for (int i = 0; i < N; i++) v[j][i] = fmaf(v[j][i] * inverse, a[j][i], b[j][i]);
			store(y + r * width + c, v[j]);
		});
	});
}
extern "C" __global__ void __launch_bounds__(threads, 4) nn_layer_norm(const T *x, const float *x32,
	const float *scale, const float *bias, T *y, long long rows, int width, double eps, int packs) {
	if (packs) layerNorm<V>({x, x32}, scale, bias, y, rows, width, eps);
	else layerNorm<1>({x, x32}, scale, bias, y, rows, width, eps);
}

// nn_layer_norm_grad writes the gradient of the rows, unless dx is null, and the block's sums for those of scale and
// bias, partial [gridDim.x, 2, width], unless that is null. Without packs a thread holds only `few` elements.
template <int N, int H> __device__ void layerNormGrad(Input x, const float *scale, Input dy, T *dx, float *partial,
	long long rows, int width, double eps) {
	float a[H / N][N], b[H / N][N];
#pragma unroll
	for (int j = 0; j < H / N; j++)
#pragma unroll
		for (int i = 0; i < N; i++) a[j][i] = b[j][i] = 0;
	eachRow(rows, width, [&](long long r, int own) {
		long long at = r * width;
		float v[H / N][N], g[H / N][N];
		mine<N, H>(own, [&](int j, int c) { read(x, at + c, v[j]); });
		float inverse = normal<N, H>(v, own, width, eps), sum = 0, mixed = 0;
		mine<N, H>(own, [&](int j, int c) { read(dy, at + c, g[j]); });
		mine<N, H>(own, [&](int j, int c) {
#pragma unroll
			for (int i = 0; i < N; i++) {
				v[j][i] *= inverse;
				a[j][i] += g[j][i] * v[j][i];
				b[j][i] += g[j][i];
				g[j][i] *= dx ? scale[c + i] : 0;
				sum += g[j][i];
				mixed += g[j][i] * v[j][i];
			}
		});
		if (!dx) return;
		summed(sum, mixed);
		sum /= width, mixed /= width;
		mine<N, H>(own, [&](int j, int c) {
#pragma unroll
			for (int i = 0; i < N; i++) g[j][i] = (g[j][i] - sum - v[j][i] * mixed) * inverse;
			store(dx + at + c, g[j]);
		});
	});
	if (!partial) return;
	__shared__ float cells[2 * threads];
	float *to = partial + 2ll * blockIdx.x * width, *cell = cells + threadIdx.y * blockDim.x + threadIdx.x;
#pragma unroll
	for (int j = 0; j < H / N; j++)
#pragma unroll
		for (int i = 0; i < N; i++) {
			__syncthreads();
			cell[0] = a[j][i], cell[threads] = b[j][i];
			__syncthreads();
			int c = (j * blockDim.x + threadIdx.x) * N + i;
			if (threadIdx.y > 0 || c >= width) continue;
			for (int k = 1; k < blockDim.y; k++) {
				a[j][i] += cell[k * blockDim.x];
				b[j][i] += cell[threads + k * blockDim.x];
			}
			to[c] = a[j][i], to[width + c] = b[j][i];
		}
}
extern "C" __global__ void __launch_bounds__(threads, 4) nn_layer_norm_grad(const T *x, const float *x32,
	const float *scale, const T *dy, const float *dy32, T *dx, float *partial, long long rows, int width, double eps, int packs) {
	if (packs) layerNormGrad<V, held>({x, x32}, scale, {dy, dy32}, dx, partial, rows, width, eps);
	else layerNormGrad<1, few>({x, x32}, scale, {dy, dy32}, dx, partial, rows, width, eps);
}

// nn_layer_norm_sums adds up the sums of `parts` blocks and divides them by the loss scale. A block of 32·8 threads has
// 32 columns. Results may be null.
extern "C" __global__ void __launch_bounds__(threads, 4) nn_layer_norm_sums(const float *partial, int parts, int width,
	float *scale, float *bias, const float *loss) {
	__shared__ double cells[threads];
	int c = blockIdx.x * 32 + threadIdx.x;
	double sum = 0;
	if (c < 2 * width)
		for (int k = threadIdx.y; k < parts; k += 8) sum += partial[2ll * k * width + c];
	cells[threadIdx.y * 32 + threadIdx.x] = sum;
	__syncthreads();
	if (threadIdx.y > 0 || c >= 2 * width) return;
	for (int k = 1; k < 8; k++) sum += cells[k * 32 + threadIdx.x];
	float *to = c < width ? scale : bias;
	if (to) to[c < width ? c : c - width] = (float)(sum * unscaleOf(loss));
}

// nn_softmax writes exp(x)/Σ exp(x) of each row. What a thread does not hold it reads again. y may be x.
template <int N> __device__ void softmax(Input x, T *y, long long rows, int width) {
	eachRow(rows, width, [&](long long r, int own) {
		long long at = r * width;
		float v[held / N][N], top = -__uint_as_float(0x7f800000u), sum = 0;
		mine<N>(own, [&](int j, int c) {
			read(x, at + c, v[j]);
#pragma unroll
			for (int i = 0; i < N; i++) top = fmaxf(top, v[j][i]);
		});
		rest<N>(own, [&](int c) {
			float a[N];
			read(x, at + c, a);
#pragma unroll
			for (int i = 0; i < N; i++) top = fmaxf(top, a[i]);
		});
		top = largest(top);
		mine<N>(own, [&](int j, int) {
#pragma unroll
			for (int i = 0; i < N; i++) sum += v[j][i] = expf(v[j][i] - top);
		});
		rest<N>(own, [&](int c) {
			float a[N];
			read(x, at + c, a);
#pragma unroll
			for (int i = 0; i < N; i++) sum += expf(a[i] - top);
		});
		sum = 1 / summed(sum);
		mine<N>(own, [&](int j, int c) {
#pragma unroll
			for (int i = 0; i < N; i++) v[j][i] *= sum;
			store(y + at + c, v[j]);
		});
		rest<N>(own, [&](int c) {
			float a[N];
			read(x, at + c, a);
#pragma unroll
			for (int i = 0; i < N; i++) a[i] = expf(a[i] - top) * sum;
			store(y + at + c, a);
		});
	});
}
extern "C" __global__ void __launch_bounds__(threads, 4) nn_softmax(const T *x, const float *x32, T *y,
	long long rows, int width, int packs) {
	if (packs) softmax<V>({x, x32}, y, rows, width);
	else softmax<1>({x, x32}, y, rows, width);
}

// nn_softmax_grad writes y ∘ (dy - Σ y dy) of each row. dx may be y or dy. Without packs a thread holds only
// `few` elements.
template <int N, int H> __device__ void softmaxGrad(const T *y, Input dy, T *dx, long long rows, int width) {
	eachRow(rows, width, [&](long long r, int own) {
		long long at = r * width;
		float v[H / N][N], g[H / N][N], sum = 0;
		mine<N, H>(own, [&](int j, int c) {
			load(y + at + c, v[j]);
			read(dy, at + c, g[j]);
#pragma unroll
			for (int i = 0; i < N; i++) sum += v[j][i] * g[j][i];
		});
		rest<N, H>(own, [&](int c) {
			float a[N], b[N];
			load(y + at + c, a);
			read(dy, at + c, b);
#pragma unroll
			for (int i = 0; i < N; i++) sum += a[i] * b[i];
		});
		sum = summed(sum);
		mine<N, H>(own, [&](int j, int c) {
#pragma unroll
			for (int i = 0; i < N; i++) g[j][i] = v[j][i] * (g[j][i] - sum);
			store(dx + at + c, g[j]);
		});
		rest<N, H>(own, [&](int c) {
			float a[N], b[N];
			load(y + at + c, a);
			read(dy, at + c, b);
#pragma unroll
			for (int i = 0; i < N; i++) b[i] = a[i] * (b[i] - sum);
			store(dx + at + c, b);
		});
	});
}
extern "C" __global__ void __launch_bounds__(threads, 4) nn_softmax_grad(const T *y, const T *dy,
	const float *dy32, T *dx, long long rows, int width, int packs) {
	if (packs) softmaxGrad<V, held>(y, {dy, dy32}, dx, rows, width);
	else softmaxGrad<1, few>(y, {dy, dy32}, dx, rows, width);
}
