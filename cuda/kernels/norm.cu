// Batch normalisation of activations that lie channels last: [pixels, channels]. A block has a channel for each threadIdx.x and
// goes through pixels by threadIdx.y. Sums are float64: of each block first, then of all blocks, always in the same order.

constexpr int threads = 256;

#define CHANNEL int c = blockIdx.x * blockDim.x + threadIdx.x
#define PIXELS(p) \
	for (long long p = (long long)blockIdx.y * blockDim.y + threadIdx.y; p < pixels; p += (long long)gridDim.y * blockDim.y)

// keep writes the sums of a and b of the block's pixels to partial [gridDim.y, 2, channels]. blockDim.y is a power of 2.
__device__ void keep(double a, double b, double *partial, int channels) {
	__shared__ double first[threads], second[threads];
	CHANNEL;
	int at = threadIdx.y * blockDim.x + threadIdx.x;
	first[at] = a;
	second[at] = b;
	__syncthreads();
	for (int half = blockDim.y / 2; half > 0; half /= 2) {
		if (threadIdx.y < half) {
			first[at] += first[at + half * blockDim.x];
			second[at] += second[at + half * blockDim.x];
		}
		__syncthreads();
	}
	if (threadIdx.y == 0 && c < channels) {
		partial[2ll * blockIdx.y * channels + c] = first[at];
		partial[(2ll * blockIdx.y + 1) * channels + c] = second[at];
	}
}

// total adds up the sums of the blocks for a channel.
__device__ void total(const double *partial, int blocks, int channels, int c, double &a, double &b) {
	a = b = 0;
	for (int k = 0; k < blocks; k++) {
		a += partial[2ll * k * channels + c];
		b += partial[(2ll * k + 1) * channels + c];
	}
}

extern "C" __global__ void nn_moments(const float *x, double *partial, long long pixels, int channels) {
	CHANNEL;
	double sum = 0, squares = 0;
	if (c < channels) PIXELS(p) {
		double v = x[p * channels + c];
		sum += v;
		squares += v * v;
	}
	keep(sum, squares, partial, channels);
}

// nn_stats makes the mean and the biased variance of the moments.
extern "C" __global__ void nn_stats(const double *partial, int blocks, float *stats, long long pixels, int channels) {
	CHANNEL;
	if (c >= channels) return;
	double sum, squares;
	total(partial, blocks, channels, c, sum, squares);
	double mean = sum / pixels, var = squares / pixels - mean * mean;
	stats[c] = (float)mean;
	stats[channels + c] = var > 0 || var != var ? (float)var : 0;
}

// nn_batch_norm writes scale (x - mean)/√(var + eps) + bias, plus other where there is one, of which the ReLU where asked for.
// y may be x or other.
extern "C" __global__ void nn_batch_norm(const float *x, const float *stats, const float *scale, const float *bias, const float *other, float *y,
                                         long long pixels, int channels, double eps, int relu) {
	CHANNEL;
	if (c >= channels) return;
	float mean = stats[c], b = bias[c];
	float a = (float)(scale[c] / sqrt(stats[channels + c] + eps));
	PIXELS(p) {
		long long at = p * channels + c;
		float v = (x[at] - mean) * a + b;
		if (other) v += other[at];
		y[at] = relu && v <= 0 ? 0 : v;
	}
}

extern "C" __global__ void nn_batch_norm_update(float *running, const float *stats, const float *momentum, int channels, double unbiased) {
	int i = blockIdx.x * blockDim.x + threadIdx.x;
	if (i >= 2 * channels) return;
	double m = momentum[0], v = stats[i];
	if (i >= channels) v *= unbiased;
	running[i] = (float)((1 - m) * running[i] + m * v);
}

// nn_grad_sums sums the gradient and its products with x - mean. The gradient is dy, plus more where there is one, where the
// ReLU's result y, if there is one, is not 0; it is written to grad if that is there, which may be dy, more or y.
extern "C" __global__ void nn_grad_sums(const float *x, const float *stats, const float *dy, const float *more, const float *y, float *grad,
                                        double *partial, long long pixels, int channels) {
	CHANNEL;
	double products = 0, sum = 0;
	if (c < channels) {
		double mean = stats[c];
		PIXELS(p) {
			long long at = p * channels + c;
			float g = dy[at];
			if (more) g += more[at];
			if (y && y[at] <= 0) g = 0;
			double d = x[at] - mean;
			if (grad) grad[at] = g;
			products += g * d;
			sum += g;
		}
	}
	keep(products, sum, partial, channels);
}

// nn_grad_sums_end makes the gradients of scale and bias of the sums.
extern "C" __global__ void nn_grad_sums_end(const double *partial, int blocks, const float *stats, float *sums, int channels, double eps) {
	CHANNEL;
	if (c >= channels) return;
	double products, sum;
	total(partial, blocks, channels, c, products, sum);
	sums[c] = (float)(products / sqrt(stats[channels + c] + eps));
	sums[channels + c] = (float)sum;
}

// nn_batch_norm_grad writes the gradient with respect to x. dx may be x or dy.
extern "C" __global__ void nn_batch_norm_grad(const float *x, const float *stats, const float *scale, const float *sums, const float *dy, float *dx,
                                              long long pixels, int channels, double eps, int fixed) {
	CHANNEL;
	if (c >= channels) return;
	double inv = 1 / sqrt(stats[channels + c] + eps);
	float mean = stats[c], a = (float)(scale[c] * inv);
	float b = fixed ? 0 : (float)(sums[channels + c] / (double)pixels), s = fixed ? 0 : (float)(sums[c] / (double)pixels * inv);
	PIXELS(p) {
		long long at = p * channels + c;
		dx[at] = a * (dy[at] - b - (x[at] - mean) * s);
	}
}

// nn_channel_sums sums x [N, channels, rest] over all but channels, where pixels = N·rest.
extern "C" __global__ void nn_channel_sums(const float *x, double *partial, long long pixels, int channels, long long rest) {
	CHANNEL;
	double sum = 0;
	if (c < channels) PIXELS(p) sum += x[(p / rest * channels + c) * rest + p % rest];
	keep(sum, 0, partial, channels);
}

extern "C" __global__ void nn_channel_sums_end(const double *partial, int blocks, float *y, int channels) {
	CHANNEL;
	if (c >= channels) return;
	double sum, none;
	total(partial, blocks, channels, c, sum, none);
	y[c] = (float)sum;
}
