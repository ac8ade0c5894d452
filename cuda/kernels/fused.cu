// Kernels before and after cuDNN's graphs that sum or scale channels. A thread has one channel.
#define CHANNEL                                        \
	int c = blockIdx.x * blockDim.x + threadIdx.x; \
	if (c >= channels) return

// nn_stats_of_sums computes the mean and the biased variance from the sums of values and of their squares, which become
// zeros. Unless running is null, it updates the running statistics; unbiased is pixels/(pixels - 1).
extern "C" __global__ void __launch_bounds__(256, 4) nn_stats_of_sums(float *sums, float *stats, float *running,
	const float *momentum, long long pixels, int channels, double unbiased) {
	CHANNEL;
	double mean = sums[c] / (double)pixels, var = sums[channels + c] / (double)pixels - mean * mean;
	sums[c] = sums[channels + c] = 0;
	if (var < 0) var = 0;
	stats[c] = (float)mean;
	stats[channels + c] = (float)var;
	if (!running) return;
	double m = momentum[0];
	running[c] = (float)((1 - m) * running[c] + m * stats[c]);
	running[channels + c] = (float)((1 - m) * running[channels + c] + m * stats[channels + c] * unbiased);
}

// nn_grad_sums_of_sums computes the gradients of scale and bias, without the loss scale, from the sums of the gradient
// and of its products with x, which become zeros.
extern "C" __global__ void __launch_bounds__(256, 4) nn_grad_sums_of_sums(float *sums, const float *stats,
	float *out, int channels, double eps, const float *loss) {
	CHANNEL;
	double sum = sums[c], products = sums[channels + c] - stats[c] * sum;
	sums[c] = sums[channels + c] = 0;
	out[c] = (float)(products / sqrt(stats[channels + c] + eps) * unscaleOf(loss));
	out[channels + c] = (float)(sum * unscaleOf(loss));
}

// nn_norm_factors computes a and b of the normalisation a x + b.
extern "C" __global__ void __launch_bounds__(256, 4) nn_norm_factors(const float *stats, const float *scale,
	const float *bias, float *factors, int channels, double eps) {
	CHANNEL;
	double a = scale[c] / sqrt(stats[channels + c] + eps);
	factors[c] = (float)a;
	factors[channels + c] = (float)(bias[c] - stats[c] * a);
}
