// Attention with a bias among few tokens, as in windows: rows [sequences·tokens, 3, heads·width], bias [groups, tokens,
// tokens]. A block has the queries, keys and values of one head of a sequence in shared memory, in float32, and all its
// scores. It goes over heads that share a matrix of the bias, blockIdx.x: every gridDim.y-th of them. Sums are float32,
// always in the same order.

constexpr int threads = 512, few = 52, channels = 32;  // most tokens, and most elements of a query
constexpr int pitch = channels + 4, line = few + 2;  // from one row in shared memory to the next
constexpr int part = few * pitch;
struct alignas(16) Four { float v[4]; };
struct alignas(8) Two { float v[2]; };

// Shape is what a launch has in common.
struct Shape {
	int tokens, heads, width, groups, packs;
	unsigned all;  // heads of all sequences
	float scale;
};
// eachHead calls f for the block's heads, with the places of their first elements in a token's queries and results.
template <class F> __device__ void eachHead(const Shape &s, F f) {
#pragma unroll 1
	for (unsigned b = blockIdx.x + blockIdx.y * s.groups; b < s.all; b += gridDim.y * s.groups) {
		unsigned sequence = b / s.heads, first = b % s.heads * s.width;
		unsigned at = sequence * s.tokens * s.heads * s.width;  // rows have fewer than 2³¹ elements
		f(3 * at + first, at + first);
	}
}

// fill copies a row of x for each token, `step` elements apart, and sets what lies beyond to zero.
__device__ void fill(float *to, const T *x, int step, const Shape &s) {
	int r = threadIdx.x / (channels / 4), c = threadIdx.x % (channels / 4) * 4;
	if (r >= few) return;
	Four row = {};
	if (r < s.tokens) {
		x += r * step + c;
		if (s.packs && c < s.width) {
			load(x, row.v);
		} else {
#pragma unroll
			for (int i = 0; i < 4; i++)
				if (c + i < s.width) row.v[i] = wide(x[i]);
		}
	}
	*(Four *)(to + r * pitch + c) = row;
}

// A thread has 4·2 scores from row r and column c on, or none if r is beyond them.
struct Tile { int r, c; };
__device__ Tile tile() {
	return {(int)threadIdx.x / (few / 2) * 4, (int)threadIdx.x % (few / 2) * 2};
}
// products are those of rows of a and b.
__device__ void products(const float *a, const float *b, Tile at, float (&s)[4][2]) {
#pragma unroll
	for (int i = 0; i < 4; i++) s[i][0] = s[i][1] = 0;
#pragma unroll 1
	for (int k = 0; k < channels; k += 4) {
		Four y[2] = {*(const Four *)(b + at.c * pitch + k), *(const Four *)(b + (at.c + 1) * pitch + k)};
#pragma unroll
		for (int i = 0; i < 4; i++) {
			Four x = *(const Four *)(a + (at.r + i) * pitch + k);
#pragma unroll
			for (int j = 0; j < 2; j++)
#pragma unroll
				for (int l = 0; l < 4; l++) s[i][j] += x.v[l] * y[j].v[l];
		}
	}
}
__device__ void put(float *m, Tile at, const float (&s)[4][2]) {
#pragma unroll
	for (int i = 0; i < 4; i++) *(Two *)(m + (at.r + i) * line + at.c) = {s[i][0], s[i][1]};
}

__device__ void get(const float *m, Tile at, float (&s)[4][2]) {
#pragma unroll
	for (int i = 0; i < 4; i++) {
		Two row = *(const Two *)(m + (at.r + i) * line + at.c);
		s[i][0] = row.v[0], s[i][1] = row.v[1];
	}
}

template <class F> __device__ float across(float v, F combine) {
#pragma unroll
	for (int far = 16; far > 0; far /= 2) v = combine(v, __shfl_xor_sync(0xffffffffu, v, far));
	return v;
}
__device__ float summed(float v) {
	return across(v, [](float a, float b) { return a + b; });
}

// weights sets m to the softmax of the scores of queries and keys.
__device__ void weights(const float *q, const float *k, const float *bias, const Shape &s, float *m) {
	Tile at = tile();
	if (at.r < few) {
		float v[4][2];
		products(q, k, at, v);
		const float *b = bias + (blockIdx.x * s.tokens + at.r) * s.tokens + at.c;
#pragma unroll
		for (int i = 0; i < 4; i++)
#pragma unroll
			for (int j = 0; j < 2; j++)
				v[i][j] = at.c + j >= s.tokens ? -__uint_as_float(0x7f800000u)
					: at.r + i >= s.tokens ? 0 : v[i][j] * s.scale + b[i * s.tokens + j];
		put(m, at, v);
	}
	__syncthreads();
	int lane = threadIdx.x % 32;
#pragma unroll 1
	for (int r = threadIdx.x / 32; r < few; r += threads / 32) {
		float *row = m + r * line, a = row[lane], b = lane + 32 < few ? row[lane + 32] : -__uint_as_float(0x7f800000u);
		float top = across(fmaxf(a, b), [](float a, float b) { return fmaxf(a, b); });
		a = expf(a - top), b = expf(b - top);
		float inverse = 1 / summed(a + b);
		row[lane] = a * inverse;
		if (lane + 32 < few) row[lane + 32] = b * inverse;
	}
	__syncthreads();
}

// Pair is 2·2 elements of a result: tokens from r and channels from c on, none if r is beyond them.
struct Pair {
	int r, c;
	float v[2][2];
};
__device__ Pair pair() {
	return {(int)threadIdx.x / (channels / 2) * 2, (int)threadIdx.x % (channels / 2) * 2, {{0, 0}, {0, 0}}};
}
__device__ void add(float (&v)[2], float factor, Two x) {
	v[0] += factor * x.v[0];
	v[1] += factor * x.v[1];
}
// rowsOf adds up m x, and columnsOf mᵀ x.
__device__ void rowsOf(Pair &p, const float *m, const float *x) {
#pragma unroll 2
	for (int j = 0; j < few; j += 2) {
		Two a = *(const Two *)(m + p.r * line + j), b = *(const Two *)(m + (p.r + 1) * line + j);
		Two y = *(const Two *)(x + j * pitch + p.c), z = *(const Two *)(x + (j + 1) * pitch + p.c);
		add(p.v[0], a.v[0], y), add(p.v[1], b.v[0], y);
		add(p.v[0], a.v[1], z), add(p.v[1], b.v[1], z);
	}
}
__device__ void columnsOf(Pair &p, const float *m, const float *x) {
#pragma unroll 2
	for (int j = 0; j < few; j++) {
		Two a = *(const Two *)(m + j * line + p.r), y = *(const Two *)(x + j * pitch + p.c);
		add(p.v[0], a.v[0], y), add(p.v[1], a.v[1], y);
	}
}
// write stores them times a factor to rows that are `step` elements apart.
__device__ void write(const Pair &p, T *y, int step, const Shape &s, float factor) {
	y += p.r * step + p.c;
#pragma unroll
	for (int i = 0; i < 2; i++) {
		if (p.r + i >= s.tokens) continue;
		float x[2] = {p.v[i][0] * factor, p.v[i][1] * factor};
		if (s.packs && p.c < s.width) {
			store(y + i * step, x);
		} else {
			if (p.c < s.width) y[i * step] = narrow(x[0]);
			if (p.c + 1 < s.width) y[i * step + 1] = narrow(x[1]);
		}
	}
}

// nn_attention writes the results [sequences·tokens, heads·width].
extern "C" __global__ void __launch_bounds__(threads, 2) nn_attention(const T *rows, const float *bias, T *y,
	unsigned matrices, int tokens, int heads, int width, int groups, float scale, int packs) {
	__shared__ Four tokensOf[3 * part / 4];
	__shared__ Two scores[few * line / 2];
	float *q = tokensOf->v, *k = q + part, *v = k + part, *m = scores->v;
	Shape s = {tokens, heads, width, groups, packs, matrices, scale};
	int all = heads * width;
	eachHead(s, [&](unsigned from, unsigned to) {
#pragma unroll
		for (int i = 0; i < 3; i++) fill(q + i * part, rows + from + i * all, 3 * all, s);
		__syncthreads();
		weights(q, k, bias, s, m);
		Pair p = pair();
		if (p.r < few) {
			rowsOf(p, m, v);
			write(p, y + to, all, s, 1);
		}
		__syncthreads();
	});
}

// nn_attention_grad writes the gradient of the rows, unless dx is null, and the block's sums for that of the bias, partial
// [gridDim.y, groups, tokens, tokens], unless that is null.
extern "C" __global__ void __launch_bounds__(threads, 2) nn_attention_grad(const T *rows, const float *bias, const T *dy,
	T *dx, float *partial, unsigned matrices, int tokens, int heads, int width, int groups, float scale, int packs) {
	__shared__ Four tokensOf[4 * part / 4];
	__shared__ Two scores[few * line / 2];
	__shared__ float means[few];
	float *q = tokensOf->v, *k = q + part, *v = k + part, *g = v + part, *m = scores->v;
	Shape s = {tokens, heads, width, groups, packs, matrices, scale};
	Tile at = tile();
	float sums[4][2] = {};
	int all = heads * width;
	eachHead(s, [&](unsigned from, unsigned to) {
#pragma unroll 1
		for (int i = 0; i < 3; i++) fill(q + i * part, rows + from + i * all, 3 * all, s);
		fill(g, dy + to, all, s);
		__syncthreads();
		weights(q, k, bias, s, m);
		Pair value = pair();
		if (dx && value.r < few) {
			columnsOf(value, m, g);
			write(value, dx + from + 2 * all, 3 * all, s, 1);
		}
		float p[4][2], d[4][2];
		if (at.r < few) {
			products(g, v, at, d);
			get(m, at, p);
		}
		__syncthreads();
		if (at.r < few) {
#pragma unroll
			for (int i = 0; i < 4; i++) d[i][0] *= p[i][0], d[i][1] *= p[i][1];
			put(m, at, d);
		}
		__syncthreads();
		int lane = threadIdx.x % 32;
#pragma unroll 1
		for (int r = threadIdx.x / 32; r < few; r += threads / 32) {
			float mean = summed(m[r * line + lane] + (lane + 32 < few ? m[r * line + lane + 32] : 0));
			if (lane == 0) means[r] = mean;
		}
		__syncthreads();
		if (at.r < few) {
			get(m, at, d);
#pragma unroll
			for (int i = 0; i < 4; i++)
#pragma unroll
				for (int j = 0; j < 2; j++) {
					d[i][j] -= p[i][j] * means[at.r + i];
					sums[i][j] += d[i][j];
				}
			put(m, at, d);
		}
		__syncthreads();
		Pair query = pair(), key = pair();
		if (dx && query.r < few) {
			rowsOf(query, m, k);
			write(query, dx + from, 3 * all, s, scale);
			columnsOf(key, m, q);
			write(key, dx + from + all, 3 * all, s, scale);
		}
		__syncthreads();
	});
	if (!partial || at.r >= few) return;
	float *to = partial + ((long long)blockIdx.y * groups + blockIdx.x) * tokens * tokens;
#pragma unroll
	for (int i = 0; i < 4; i++)
#pragma unroll
		for (int j = 0; j < 2; j++)
			if (at.r + i < tokens && at.c + j < tokens) to[(at.r + i) * tokens + at.c + j] = sums[i][j];
}

// nn_attention_bias adds up the sums of so many blocks and divides them by the loss scale.
extern "C" __global__ void __launch_bounds__(256, 4) nn_attention_bias(const float *partial, int parts, float *y,
	const float *loss, long long n) {
	EACH(i, n) {
		double sum = 0;
		for (int k = 0; k < parts; k++) sum += partial[k * n + i];
		y[i] = (float)(sum * unscaleOf(loss));
	}
}
