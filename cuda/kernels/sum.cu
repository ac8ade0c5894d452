// Sums of tensors over some of their axes. A tensor is viewed as [a, b, c, d] in memory order, and its sum over a and c
// as [b, d]. Sums are float64: of each block first, then of all blocks, always in the same order.

// nn_sum_to writes the sums of gridDim.z shares of a and c to partial [gridDim.z, b·d]. The threads of a block's row,
// or with across of its column, share an output, so that neighbouring threads read neighbouring terms, or outputs.
extern "C" __global__ void __launch_bounds__(256, 4) nn_sum_to(const T *x, double *partial, long long a, long long b,
	long long c, long long d, int across) {
	__shared__ double all[256];
	int share = across ? threadIdx.y : threadIdx.x, shares = across ? blockDim.y : blockDim.x;
	int mine = across ? threadIdx.x : threadIdx.y, outputs = across ? blockDim.x : blockDim.y;
	long long out = (long long)blockIdx.x * outputs + mine;
	double sum = 0;
	if (out < b * d) {
		const T *from = x + out / d * c * d + out % d;
		for (long long m = (long long)blockIdx.z * shares + share; m < a * c; m += (long long)gridDim.z * shares)
			sum += wide(from[(m / c * b * c + m % c) * d]);
	}
	double *cell = all + mine * shares + share;
	*cell = sum;
	__syncthreads();
	for (int half = shares / 2; half > 0; half /= 2) {
		if (share < half) *cell += cell[half];
		__syncthreads();
	}
	if (share == 0 && out < b * d) partial[blockIdx.z * b * d + out] = *cell;
}

// nn_sum_to_end adds up the shares and divides by the loss scale unless that is null; nn_sum_to_wide writes float32.
__device__ float ended(const double *partial, int shares, long long i, long long n, const float *scale) {
	double sum = 0;
	for (int k = 0; k < shares; k++) sum += partial[k * n + i];
	return (float)(sum * unscaleOf(scale));
}
extern "C" __global__ void __launch_bounds__(256, 4) nn_sum_to_end(const double *partial, int shares, T *y,
	const float *scale, long long n) {
	EACH(i, n) y[i] = narrow(ended(partial, shares, i, n, scale));
}
extern "C" __global__ void __launch_bounds__(256, 4) nn_sum_to_wide(const double *partial, int shares, float *y,
	const float *scale, long long n) {
	EACH(i, n) y[i] = ended(partial, shares, i, n, scale);
}
