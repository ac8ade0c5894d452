// Batch normalisation of activations that lie channels last: [pixels, channels]. A thread has one channel, or V, and
// goes through pixels by threadIdx.y. Sums are float64: of each block first, then of all blocks, always in the same order.

constexpr int threads = 256;

#define PIXELS(p) \
	for (long long p = (long long)blockIdx.y * blockDim.y + threadIdx.y; p < pixels; p += (long long)gridDim.y * blockDim.y)

// channel is the first of the thread's N: 1, or V where packs is set, for multiples of V with packed addresses.
template <int N> __device__ int channel() { return (blockIdx.x * blockDim.x + threadIdx.x) * N; }

// cells is a block's memory for sums.
__device__ double *cells() {
	__shared__ double all[2 * V * threads];
	return all;
}

// keep writes the sums of a and b of the block's pixels to partial [gridDim.y, 2, channels]. blockDim.y is a power of 2.
template <int N> __device__ void keep(const double (&a)[N], const double (&b)[N], double *partial, int channels) {
	int c = channel<N>();
	double *mine = cells() + threadIdx.y * blockDim.x + threadIdx.x;
	for (int j = 0; j < N; j++) {
		mine[2 * j * threads] = a[j];
		mine[(2 * j + 1) * threads] = b[j];
	}
	__syncthreads();
	for (int half = blockDim.y / 2; half > 0; half /= 2) {
		if (threadIdx.y < half)
			for (int j = 0; j < 2 * N; j++) mine[j * threads] += mine[j * threads + half * blockDim.x];
		__syncthreads();
	}
	if (threadIdx.y == 0)
		for (int j = 0; j < N && c + j < channels; j++) {
			partial[2ll * blockIdx.y * channels + c + j] = mine[2 * j * threads];
			partial[(2ll * blockIdx.y + 1) * channels + c + j] = mine[(2 * j + 1) * threads];
		}
}

// total adds up the sums of the blocks for channel c, each threadIdx.y a share of them; row 0 has the sum. It says whether
// the thread is to use it.
__device__ bool total(const double *partial, int blocks, int channels, int &c, double &a, double &b) {
	c = channel<1>();
	double *mine = cells() + threadIdx.y * blockDim.x + threadIdx.x;
	a = b = 0;
	if (c < channels)
		for (int k = threadIdx.y; k < blocks; k += blockDim.y) {
			a += partial[2ll * k * channels + c];
			b += partial[(2ll * k + 1) * channels + c];
		}
	mine[0] = a;
	mine[threads] = b;
	__syncthreads();
	if (threadIdx.y > 0 || c >= channels) return false;
	for (int k = 1; k < blockDim.y; k++) {
		a += mine[k * blockDim.x];
		b += mine[threads + k * blockDim.x];
	}
	return true;
}

template <int N> __device__ void moments(const T *x, double *partial, long long pixels, int channels) {
	int c = channel<N>();
	double sum[N] = {}, squares[N] = {};
	if (c < channels) PIXELS(p) {
		float v[N];
		load(x + p * channels + c, v);
		for (int j = 0; j < N; j++) {
			double d = v[j];
			sum[j] += d;
			squares[j] += d * d;
		}
	}
	keep(sum, squares, partial, channels);
}
extern "C" __global__ void nn_moments(const T *x, double *partial, long long pixels, int channels, int packs) {
	if (packs) moments<V>(x, partial, pixels, channels);
	else moments<1>(x, partial, pixels, channels);
}

// nn_stats makes the mean and the biased variance of the moments.
extern "C" __global__ void nn_stats(const double *partial, int blocks, float *stats, long long pixels, int channels) {
	int c;
	double sum, squares;
	if (!total(partial, blocks, channels, c, sum, squares)) return;
	double mean = sum / pixels, var = squares / pixels - mean * mean;
	stats[c] = (float)mean;
	stats[channels + c] = var > 0 || var != var ? (float)var : 0;
}

// nn_batch_norm writes scale (x - mean)/√(var + eps) + bias, plus other where there is one, of which the ReLU where asked for.
// y may be x or other.
template <int N> __device__ void normalise(const T *x, const float *stats, const float *scale, const float *bias, const T *other, T *y,
                                                  long long pixels, int channels, double eps, int last) {
	int c = channel<N>();
	if (c >= channels) return;
	float mean[N], a[N], b[N];
	for (int j = 0; j < N; j++) {
		mean[j] = stats[c + j];
		a[j] = (float)(scale[c + j] / sqrt(stats[channels + c + j] + eps));
		b[j] = bias[c + j];
	}
	PIXELS(p) {
		long long at = p * channels + c;
		float v[N], o[N];
		load(x + at, v);
		if (other) load(other + at, o);
		for (int j = 0; j < N; j++) {
			v[j] = (v[j] - mean[j]) * a[j] + b[j];
			if (other) v[j] += o[j];
			if (last && v[j] <= 0) v[j] = 0;
		}
		store(y + at, v);
	}
}
extern "C" __global__ void nn_batch_norm(const T *x, const float *stats, const float *scale, const float *bias, const T *other, T *y,
                                         long long pixels, int channels, double eps, int relu, int packs) {
	if (packs) normalise<V>(x, stats, scale, bias, other, y, pixels, channels, eps, relu);
	else normalise<1>(x, stats, scale, bias, other, y, pixels, channels, eps, relu);
}

extern "C" __global__ void nn_batch_norm_update(float *running, const float *stats, const float *momentum, int channels, double unbiased) {
	int i = blockIdx.x * blockDim.x + threadIdx.x;
	if (i >= 2 * channels) return;
	double m = momentum[0], v = stats[i];
	if (i >= channels) v *= unbiased;
	running[i] = (float)((1 - m) * running[i] + m * v);
}

// nn_grad_sums sums the gradient and its products with x - mean. The gradient is dy, plus more where there is one, where the
// ReLU's result y, if there is one, is not 0; it is written to grad if that is there, which may be dy, more or y. What is summed is
// what is written.
template <int N> __device__ void gradSums(const T *x, const float *stats, const T *dy, const T *more, const T *y, T *grad, double *partial,
                                                 long long pixels, int channels) {
	int c = channel<N>();
	double products[N] = {}, sum[N] = {};
	if (c < channels) {
		double mean[N];
		for (int j = 0; j < N; j++) mean[j] = stats[c + j];
		PIXELS(p) {
			long long at = p * channels + c;
			float v[N], g[N], m[N], r[N];
			load(x + at, v);
			load(dy + at, g);
			if (more) load(more + at, m);
			if (y) load(y + at, r);
			for (int j = 0; j < N; j++) {
				if (more) g[j] = wide(narrow(g[j] + m[j]));
				if (y && r[j] <= 0) g[j] = 0;
				products[j] += g[j] * (v[j] - mean[j]);
				sum[j] += g[j];
			}
			if (grad) store(grad + at, g);
		}
	}
	keep(products, sum, partial, channels);
}
extern "C" __global__ void nn_grad_sums(const T *x, const float *stats, const T *dy, const T *more, const T *y, T *grad, double *partial,
                                        long long pixels, int channels, int packs) {
	if (packs) gradSums<V>(x, stats, dy, more, y, grad, partial, pixels, channels);
	else gradSums<1>(x, stats, dy, more, y, grad, partial, pixels, channels);
}

// nn_grad_sums_end makes the gradients of scale and bias of the sums, without the scale of the loss.
extern "C" __global__ void nn_grad_sums_end(const double *partial, int blocks, const float *stats, float *sums, int channels, double eps,
                                            const float *loss) {
	int c;
	double products, sum;
	if (!total(partial, blocks, channels, c, products, sum)) return;
	sums[c] = (float)(products / sqrt(stats[channels + c] + eps) * unscaleOf(loss));
	sums[channels + c] = (float)(sum * unscaleOf(loss));
}

// nn_batch_norm_grad writes the gradient with respect to x, with the scale of the loss as dy has it and sums do not. dx may be x or dy.
template <int N> __device__ void normGrad(const T *x, const float *stats, const float *scale, const float *sums, const T *dy, T *dx,
                                                       long long pixels, int channels, double eps, int fixed, const float *loss) {
	int c = channel<N>();
	if (c >= channels) return;
	float mean[N], a[N], b[N], s[N];
	for (int j = 0; j < N; j++) {
		double inv = 1 / sqrt(stats[channels + c + j] + eps), each = scaleOf(loss) / (double)pixels;
		mean[j] = stats[c + j];
		a[j] = (float)(scale[c + j] * inv);
		b[j] = fixed ? 0 : (float)(sums[channels + c + j] * each);
		s[j] = fixed ? 0 : (float)(sums[c + j] * each * inv);
	}
	PIXELS(p) {
		long long at = p * channels + c;
		float v[N], d[N];
		load(x + at, v);
		load(dy + at, d);
		for (int j = 0; j < N; j++) d[j] = a[j] * (d[j] - b[j] - (v[j] - mean[j]) * s[j]);
		store(dx + at, d);
	}
}
extern "C" __global__ void nn_batch_norm_grad(const T *x, const float *stats, const float *scale, const float *sums, const T *dy, T *dx,
                                              long long pixels, int channels, double eps, int fixed, const float *loss, int packs) {
	if (packs) normGrad<V>(x, stats, scale, sums, dy, dx, pixels, channels, eps, fixed, loss);
	else normGrad<1>(x, stats, scale, sums, dy, dx, pixels, channels, eps, fixed, loss);
}

// nn_channel_sums sums x [N, channels, rest] over all but channels, where pixels = N·rest.
extern "C" __global__ void nn_channel_sums(const T *x, double *partial, long long pixels, int channels, long long rest) {
	int c = channel<1>();
	double sum[1] = {}, none[1] = {};
	if (c < channels) PIXELS(p) sum[0] += wide(x[(p / rest * channels + c) * rest + p % rest]);
	keep(sum, none, partial, channels);
}

// nn_channel_sums_end writes the sums without the scale of the loss.
extern "C" __global__ void nn_channel_sums_end(const double *partial, int blocks, float *y, int channels, const float *loss) {
	int c;
	double sum, none;
	if (total(partial, blocks, channels, c, sum, none)) y[c] = (float)(sum * unscaleOf(loss));
}
