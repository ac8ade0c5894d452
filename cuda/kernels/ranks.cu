// Exchange of 16-bit elements between ranks, with sums in float32. vector.cu narrows the elements of a gradient.

constexpr int threads = 256;

// ranks_sum adds up the ranks' parts, stored one after another, in the order of the ranks.
extern "C" __global__ void __launch_bounds__(threads, 4) ranks_sum(const T *parts, int ranks, T *out, long long n) {
	EACH(i, n) {
		float sum = wide(parts[i]);
		for (int k = 1; k < ranks; k++) sum += wide(parts[k * n + i]);
		out[i] = narrow(sum);
	}
}

extern "C" __global__ void __launch_bounds__(threads, 4) ranks_widen(const T *x, float *out, long long n) {
	EACH(i, n) out[i] = wide(x[i]);
}
