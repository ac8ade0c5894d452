// Batch normalisation of channels-last activations: [pixels, channels]. A thread has one channel, or V, and loops over
// pixels by threadIdx.y, several at a time, so that their loads overlap. Sums are float32 over a few pixels, then
// float64 over a thread, its block, a group of blocks and all blocks, always in the same order. The last block adds up
// and finishes.

constexpr int threads = 256;
constexpr int chunk = 16;  // pixels of a thread that are summed in float32
constexpr int group = 32;  // blocks whose sums one block adds up
constexpr int flight = 4;  // overlapping loads of 16 bytes
constexpr int ahead = 4;   // rows of sums whose loads overlap

// channel is the first of the thread's N channels: N is 1, or V with packs, which needs multiples of V and aligned
// addresses.
template <int N> __device__ int channel() { return (blockIdx.x * blockDim.x + threadIdx.x) * N; }
__device__ int self() { return threadIdx.y * blockDim.x + threadIdx.x; }

// sweep loops over the thread's pixels: it calls read for U of them, then use for each of these, and end after a chunk.
template <int U, class P, class R, class F, class E> __device__ void sweep(long long pixels, R read, F use, E end) {
	long long step = (long long)gridDim.y * blockDim.y, p = (long long)blockIdx.y * blockDim.y + threadIdx.y;
#pragma unroll 1
	for (int n = 0; p < pixels; p += U * step) {
		P got[U];
#pragma unroll
		for (int u = 0; u < U; u++)
			if (p + u * step < pixels) got[u] = read(p + u * step);
#pragma unroll
		for (int u = 0; u < U; u++)
			if (p + u * step < pixels) use(p + u * step, got[u]);
		if ((n += U) % chunk == 0) end();
	}
	end();
}

// prepare calls f once for each channel of the block to compute K coefficients, and gives each thread those of its
// channels. table has K·threads elements.
template <int N, int K, class F> __device__ void prepare(float *table, int channels, float (&to)[K][N], F f) {
	int c = blockIdx.x * blockDim.x * N + self();
	if (self() < blockDim.x * N && c < channels) {
		float made[K];
		f(c, made);
		for (int k = 0; k < K; k++) table[k * threads + self()] = made[k];
	}
	__syncthreads();
	if (channel<N>() < channels)
		for (int k = 0; k < K; k++)
			for (int j = 0; j < N; j++) to[k][j] = table[k * threads + threadIdx.x * N + j];
	__syncthreads();
}
template <int K> __device__ float *table() {
	__shared__ float all[K * threads];
	return all;
}

// cells is a block's memory for two sums of N channels of each thread.
template <int N> __device__ double *cells() {
	__shared__ double all[2 * N * threads];
	return all;
}

// Sums are two sums for each of the thread's channels: float32 here, float64 in its cells. The cells are volatile so
// that they are added one after another, which takes fewer registers.
template <int N> struct Sums {
	volatile double *cell;
	float a[N], b[N];
};
template <int N> __device__ void clear(Sums<N> &s, double *cells) {
	s.cell = cells + self();
#pragma unroll
	for (int j = 0; j < N; j++) {
		s.cell[2 * j * threads] = 0;
		s.cell[(2 * j + 1) * threads] = 0;
		s.a[j] = s.b[j] = 0;
	}
}
template <int N> __device__ void fold(Sums<N> &s) {
#pragma unroll
	for (int j = 0; j < N; j++) {
		s.cell[2 * j * threads] = s.cell[2 * j * threads] + s.a[j];
		s.cell[(2 * j + 1) * threads] = s.cell[(2 * j + 1) * threads] + s.b[j];
		s.a[j] = s.b[j] = 0;
	}
}

// last tells all threads of a block whether it is the last of n blocks to arrive. It resets the counter to 0.
__device__ bool last(unsigned *counter, unsigned n) {
	__shared__ int is;
	__threadfence();
	__syncthreads();
	if (self() == 0) {
		is = atomicAdd(counter, 1u) == n - 1;
		if (is) *counter = 0;
	}
	__syncthreads();
	__threadfence();
	return is;
}

// total adds up rows of partial sums, stride apart, for the thread's channel among count channels from c on. Threads
// with the same channel share the rows. It returns whether the thread has the sum.
__device__ bool total(double *cells, const double *partial, int rows, int stride, int channels, int c, int count,
	double &a, double &b) {
	int share = self() / count, shares = threads / count;
	c += self() % count;
	a = b = 0;
	if (c < channels)
		for (int k = share; k < rows; k += ahead * shares) {
			double x[ahead], y[ahead];
#pragma unroll
			for (int u = 0; u < ahead; u++) {
				// The rows were written by other blocks.
				const volatile double *from = partial + 2ll * (k + u * shares) * stride * channels + c;
				if (k + u * shares < rows) x[u] = from[0], y[u] = from[channels];
			}
#pragma unroll
			for (int u = 0; u < ahead; u++)
				if (k + u * shares < rows) a += x[u], b += y[u];
		}
	__syncthreads();
	cells[self()] = a;
	cells[threads + self()] = b;
	__syncthreads();
	if (share > 0 || c >= channels) return false;
	for (int k = 1; k < shares; k++) {
		a += cells[k * count + self()];
		b += cells[threads + k * count + self()];
	}
	return true;
}

// finish calls f for each channel with its sums, which lie in the cells of all threads of all blocks. blockDim.y is a
// power of 2; partial is [gridDim.y, 2, channels]. Each blockIdx.x has one counter for each group of blocks and one
// more, all 0.
template <int N, class F> __device__ void finish(double *cells, double *partial, unsigned *counters, int channels,
	F f) {
	double *mine = cells + self();
	__syncthreads();
	for (int half = blockDim.y / 2; half > 0; half /= 2) {
		if (threadIdx.y < half)
			for (int j = 0; j < 2 * N; j++) mine[j * threads] += mine[j * threads + half * blockDim.x];
		__syncthreads();
	}
	int c = channel<N>();
	if (threadIdx.y == 0)
		for (int j = 0; j < N && c + j < channels; j++) {
			partial[2ll * blockIdx.y * channels + c + j] = mine[2 * j * threads];
			partial[(2ll * blockIdx.y + 1) * channels + c + j] = mine[(2 * j + 1) * threads];
		}

	int groups = (gridDim.y + group - 1) / group, own = blockIdx.y / group, count = blockDim.x * N,
		first = blockIdx.x * count;
	int rows = own < groups - 1 ? group : gridDim.y - own * group;
	counters += blockIdx.x * (groups + 1);
	if (!last(counters + 1 + own, rows)) return;
	double a, b, *row = partial + 2ll * own * group * channels;
	bool use = total(cells, row, rows, 1, channels, first, count, a, b);
	if (groups > 1) {
		if (use) {
			row[first + self()] = a;
			row[channels + first + self()] = b;
		}
		if (!last(counters, groups)) return;
		use = total(cells, partial, groups, group, channels, first, count, a, b);
	}
	if (use) f(first + self(), a, b);
}

// Moments turns the sums of x - pivot and of its squares into the mean and the biased variance and, unless running is
// null, the next running statistics.
struct Moments {
	float *stats, *running;
	const float *momentum;
	double unbiased;
	long long pixels;
	int channels;
};
__device__ float next(float running, double value, double momentum) {
	return (float)((1 - momentum) * running + momentum * value);
	
}
__device__ void end(const Moments &to, int c, double pivot, double sum, double squares) {
	double d = sum / to.pixels, variance = squares / to.pixels - d * d;
	float mean = (float)(pivot + d), var = variance > 0 || variance != variance ? (float)variance : 0;
	to.stats[c] = mean;
	to.stats[to.channels + c] = var;
	if (!to.running) return;
	float *running = to.running + c;
	running[0] = next(running[0], mean, to.momentum[0]);
	running[to.channels] = next(running[to.channels], var * to.unbiased, to.momentum[0]);
}

// Squares would lose precision with a large mean: the first pixel, close to the mean, is subtracted before summing.
template <int N> __device__ void moments(const T *x, double *partial, unsigned *counters, Moments to) {
	int c = channel<N>(), channels = to.channels;
	double *all = cells<V>();
	Sums<N> sums;
	clear(sums, all);
	if (c < channels) {
		float pivot[N];
		load(x + c, pivot);
		sweep<flight, Pack<N>>(
			to.pixels, [=](long long p) { return *(const Pack<N> *)(x + p * channels + c); },
			[&](long long, const Pack<N> &k) {
#pragma unroll
				for (int j = 0; j < N; j++) {
					float d = wide(k.v[j]) - pivot[j];
					sums.a[j] += d;
					sums.b[j] += d * d;
				}
			},
			[&] { fold(sums); });
	}
	finish<N>(all, partial, counters, channels, [=](int c, double a, double b) { end(to, c, wide(x[c]), a, b); });
}
extern "C" __global__ void __launch_bounds__(threads, 4) nn_moments(const T *x, double *partial, unsigned *counters,
	float *stats, float *running, const float *momentum, double unbiased, long long pixels, int channels, int packs) {
	Moments to = {stats, running, momentum, unbiased, pixels, channels};
	if (packs) moments<V>(x, partial, counters, to);
	else moments<1>(x, partial, counters, to);
}

// nn_batch_norm_update only updates the running statistics.
extern "C" __global__ void __launch_bounds__(threads) nn_batch_norm_update(float *running, const float *stats,
	const float *momentum, int channels, double unbiased) {
	int i = blockIdx.x * blockDim.x + threadIdx.x;
	if (i >= 2 * channels) return;
	running[i] = next(running[i], i < channels ? stats[i] : stats[i] * unbiased, momentum[0]);
}

// A normalisation is a·(x - mean) + bias with a = scale/√(var + eps). Its result in type T determines the ReLU's mask,
// the same in each kernel here; graphs of cuDNN use the factors of fused.cu.
struct Norm {
	const float *stats, *scale, *bias;
	double eps;
	int channels;
};
__device__ double inverse(const Norm &n, int c) { return 1 / sqrt(n.stats[n.channels + c] + n.eps); }
__device__ float slope(const Norm &n, int c) { return (float)(n.scale[c] * inverse(n, c)); }
__device__ float normal(float d, float a, float bias) { return fmaf(d, a, bias); }
__device__ bool passes(float d, float a, float bias) { return !(wide(narrow(normal(d, a, bias))) <= 0); }

// nn_batch_norm writes the normalisation of x, plus other unless that is null, followed by a ReLU on request. y may be
// x or other.
template <int N> struct Two { Pack<N> x, y; };
template <int N, bool Adds> __device__ void normalise(const T *x, Norm norm, const T *other, T *y, long long pixels,
	int relu) {
	int c = channel<N>(), channels = norm.channels;
	float k[3][N];
	prepare(table<3>(), channels, k, [=](int c, float (&to)[3]) { to[0] = norm.stats[c], to[1] = slope(norm, c),
		to[2] = norm.bias[c]; });
	if (c >= channels) return;
	sweep<Adds ? 1 : flight / 2, Two<N>>(
		pixels,
		[=](long long p) {
			Two<N> got;
			got.x = *(const Pack<N> *)(x + p * channels + c);
			if (Adds) got.y = *(const Pack<N> *)(other + p * channels + c);
			return got;
		},
		[&](long long p, const Two<N> &got) {
			float v[N];
#pragma unroll
			for (int j = 0; j < N; j++) {
				v[j] = normal(wide(got.x.v[j]) - k[0][j], k[1][j], k[2][j]);
				if (Adds) v[j] += wide(got.y.v[j]);
				if (relu && v[j] <= 0) v[j] = 0;
			}
			store(y + p * channels + c, v);
		},
		[] {});
}
template <int N> __device__ void normalise(const T *x, Norm norm, const T *other, T *y, long long pixels, int relu) {
	if (other) normalise<N, true>(x, norm, other, y, pixels, relu);
	else normalise<N, false>(x, norm, other, y, pixels, relu);
}
extern "C" __global__ void __launch_bounds__(threads, 4) nn_batch_norm(const T *x, const float *stats,
	const float *scale, const float *bias, const T *other, T *y, long long pixels, int channels, double eps, int relu,
	int packs) {
	Norm norm = {stats, scale, bias, eps, channels};
	if (packs) normalise<V>(x, norm, other, y, pixels, relu);
	else normalise<1>(x, norm, other, y, pixels, relu);
}

// nn_batch_norm_two writes the sum of the normalisations of x and of other, followed by a ReLU on request. y may be x
// or other.
template <int N> __device__ void normaliseTwo(const T *x, Norm norm, const T *other, Norm with, T *y, long long pixels,
	int relu) {
	int c = channel<N>(), channels = norm.channels;
	float k[3][N];  // k0·x + k1·other + k2
	prepare(table<3>(), channels, k, [=](int c, float (&to)[3]) {
		double a = norm.scale[c] * inverse(norm, c), b = with.scale[c] * inverse(with, c);
		to[0] = (float)a, to[1] = (float)b, to[2] = (float)(norm.bias[c] - norm.stats[c] * a +
			(with.bias[c] - with.stats[c] * b));
	});
	if (c >= channels) return;
	sweep<1, Two<N>>(
		pixels,
		[=](long long p) {
			long long at = p * channels + c;
			return Two<N>{*(const Pack<N> *)(x + at), *(const Pack<N> *)(other + at)};
		},
		[&](long long p, const Two<N> &got) {
			float v[N];
#pragma unroll
			for (int j = 0; j < N; j++) {
				v[j] = fmaf(wide(got.x.v[j]), k[0][j], fmaf(wide(got.y.v[j]), k[1][j], k[2][j]));
				if (relu && v[j] <= 0) v[j] = 0;
			}
			store(y + p * channels + c, v);
		},
		[] {});
}
extern "C" __global__ void __launch_bounds__(threads, 4) nn_batch_norm_two(const T *x, const float *stats,
	const float *scale, const float *bias, const T *other, const float *stats2, const float *scale2, const float *bias2,
	T *y, long long pixels, int channels, double eps, double eps2, int relu, int packs) {
	Norm norm = {stats, scale, bias, eps, channels}, with = {stats2, scale2, bias2, eps2, channels};
	if (packs) normaliseTwo<V>(x, norm, other, with, y, pixels, relu);
	else normaliseTwo<1>(x, norm, other, with, y, pixels, relu);
}

// The sums of a gradient and of its products with x - mean give the gradients of scale and bias, without the loss
// scale.
template <int N> __device__ void gradEnd(double *cells, double *partial, unsigned *counters, Norm norm, float *to,
	const float *loss) {
	finish<N>(cells, partial, counters, norm.channels, [=](int c, double products, double sum) {
		to[c] = (float)(products * inverse(norm, c) * unscaleOf(loss));
		to[norm.channels + c] = (float)(sum * unscaleOf(loss));
	});
}

// nn_grad_sums sums the gradient and its products with x - mean. The gradient is dy, plus more unless that is null.
// With the result y of a ReLU it is 0 where y is 0. Unless grad is null, the gradient is written there; grad may be dy,
// more or y. The sums use the values as written.
template <int N> struct Four { Pack<N> x, dy, more, y; };
template <int N> __device__ void gradSums(const T *x, Norm norm, const T *dy, const T *more, const T *y, T *grad,
	double *partial, unsigned *counters, float *to, long long pixels, const float *loss) {
	int c = channel<N>(), channels = norm.channels;
	double *all = cells<V>();
	float k[1][N];
	prepare((float *)all, channels, k, [=](int c, float (&to)[1]) { to[0] = norm.stats[c]; });
	Sums<N> sums;
	clear(sums, all);
	if (c < channels)
		sweep<1, Four<N>>(
			pixels,
			[=](long long p) {
				long long at = p * channels + c;
				Four<N> got;
				got.x = *(const Pack<N> *)(x + at);
				got.dy = *(const Pack<N> *)(dy + at);
				if (more) got.more = *(const Pack<N> *)(more + at);
				if (y) got.y = *(const Pack<N> *)(y + at);
				return got;
			},
			[&](long long p, const Four<N> &got) {
				Pack<N> g = got.dy;
				if (more)
#pragma unroll
					for (int j = 0; j < N; j++) g.v[j] = narrow(wide(g.v[j]) + wide(got.more.v[j]));
				if (y)
#pragma unroll
					for (int j = 0; j < N; j++)
						if (wide(got.y.v[j]) <= 0) g.v[j] = narrow(0);
				if (grad) *(Pack<N> *)(grad + p * channels + c) = g;
#pragma unroll
				for (int j = 0; j < N; j++) {
					float d = wide(g.v[j]);
					sums.a[j] += d * (wide(got.x.v[j]) - k[0][j]);
					sums.b[j] += d;
				}
			},
			[&] { fold(sums); });
	gradEnd<N>(all, partial, counters, norm, to, loss);
}
extern "C" __global__ void __launch_bounds__(threads, 4) nn_grad_sums(const T *x, const float *stats, const T *dy,
	const T *more, const T *y, T *grad, double *partial, unsigned *counters, float *sums, long long pixels,
	int channels, double eps, const float *loss, int packs) {
	Norm norm = {stats, nullptr, nullptr, eps, channels};
	if (packs) gradSums<V>(x, norm, dy, more, y, grad, partial, counters, sums, pixels, loss);
	else gradSums<1>(x, norm, dy, more, y, grad, partial, counters, sums, pixels, loss);
}

// nn_grad_sums_relu masks dy by the ReLU after the normalisation of x, and writes no gradient.
template <int N> __device__ void gradSumsReLU(const T *x, Norm norm, const T *dy, double *partial, unsigned *counters,
	float *to, long long pixels, const float *loss) {
	int c = channel<N>(), channels = norm.channels;
	double *all = cells<V>();
	float k[3][N];
	prepare((float *)all, channels, k, [=](int c, float (&to)[3]) { to[0] = norm.stats[c], to[1] = slope(norm, c),
		to[2] = norm.bias[c]; });
	Sums<N> sums;
	clear(sums, all);
	if (c < channels)
		sweep<1, Two<N>>(
			pixels,
			[=](long long p) {
				long long at = p * channels + c;
				return Two<N>{*(const Pack<N> *)(x + at), *(const Pack<N> *)(dy + at)};
			},
			[&](long long, const Two<N> &got) {
#pragma unroll
				for (int j = 0; j < N; j++) {
					float d = wide(got.x.v[j]) - k[0][j], g = passes(d, k[1][j], k[2][j]) ? wide(got.y.v[j]) : 0;
					sums.a[j] += g * d;
					sums.b[j] += g;
				}
			},
			[&] { fold(sums); });
	gradEnd<N>(all, partial, counters, norm, to, loss);
}
extern "C" __global__ void __launch_bounds__(threads, 4) nn_grad_sums_relu(const T *x, const float *stats,
	const float *scale, const float *bias, const T *dy, double *partial, unsigned *counters, float *sums,
	long long pixels, int channels, double eps, const float *loss, int packs) {
	Norm norm = {stats, scale, bias, eps, channels};
	if (packs) gradSumsReLU<V>(x, norm, dy, partial, counters, sums, pixels, loss);
	else gradSumsReLU<1>(x, norm, dy, partial, counters, sums, pixels, loss);
}

// nn_batch_norm_grad writes the gradient with respect to x. dy and the result carry the loss scale, the sums do not.
// Unless bias is null, dy is masked by the ReLU after the normalisation. dx may be x or dy.
template <int N> __device__ void normGrad(const T *x, Norm norm, const float *sums, const T *dy, T *dx,
	long long pixels, const float *loss) {
	int c = channel<N>(), channels = norm.channels;
	bool relu = norm.bias;
	float k[5][N];  // a·dy + k3·(x - mean) + k4
	prepare(table<5>(), channels, k, [=](int c, float (&to)[5]) {
		double each = scaleOf(loss) / (double)pixels;
		to[0] = norm.stats[c], to[1] = slope(norm, c), to[2] = relu ? norm.bias[c] : 0;
		to[3] = (float)(-to[1] * inverse(norm, c) * sums[c] * each);
		to[4] = (float)(-to[1] * sums[channels + c] * each);
	});
	if (c >= channels) return;
	sweep<1, Two<N>>(
		pixels,
		[=](long long p) {
			long long at = p * channels + c;
			return Two<N>{*(const Pack<N> *)(x + at), *(const Pack<N> *)(dy + at)};
		},
		[&](long long p, const Two<N> &got) {
			float d[N];
#pragma unroll
			for (int j = 0; j < N; j++) {
				float v = wide(got.x.v[j]) - k[0][j], g = wide(got.y.v[j]);
				if (relu && !passes(v, k[1][j], k[2][j])) g = 0;
				d[j] = k[1][j] * g + (k[3][j] * v + k[4][j]);
			}
			store(dx + p * channels + c, d);
		},
		[] {});
}
extern "C" __global__ void __launch_bounds__(threads, 4) nn_batch_norm_grad(const T *x, const float *stats,
	const float *scale, const float *bias, const float *sums, const T *dy, T *dx, long long pixels, int channels,
	double eps, const float *loss, int packs) {
	Norm norm = {stats, scale, bias, eps, channels};
	if (packs) normGrad<V>(x, norm, sums, dy, dx, pixels, loss);
	else normGrad<1>(x, norm, sums, dy, dx, pixels, loss);
}

// nn_channel_sums sums x [N, channels, rest] over all axes but channels, without the loss scale; pixels = N·rest. With
// packs rest is 1.
template <int N> __device__ void channelSums(const T *x, double *partial, unsigned *counters, float *y,
	long long pixels, int channels, long long rest, const float *loss) {
	int c = channel<N>();
	double *all = cells<V>();
	Sums<N> sums;
	clear(sums, all);
	if (c < channels)
		sweep<flight, Pack<N>>(
			pixels,
			[=](long long p) {
				return *(const Pack<N> *)(rest == 1 ? x + p * channels + c : x + (p / rest * channels + c) * rest + p % rest);
			},
			[&](long long, const Pack<N> &k) {
#pragma unroll
				for (int j = 0; j < N; j++) sums.a[j] += wide(k.v[j]);
			},
			[&] { fold(sums); });
	finish<N>(all, partial, counters, channels,
		[=](int c, double sum, double) { y[c] = (float)(sum * unscaleOf(loss)); });
}
extern "C" __global__ void __launch_bounds__(threads, 4) nn_channel_sums(const T *x, double *partial,
	unsigned *counters, float *y, long long pixels, int channels, long long rest, const float *loss, int packs) {
	if (packs) channelSums<V>(x, partial, counters, y, pixels, channels, rest, loss);
	else channelSums<1>(x, partial, counters, y, pixels, channels, rest, loss);
}
