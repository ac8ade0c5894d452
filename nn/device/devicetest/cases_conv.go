package devicetest

import (
	"math/rand/v2"

	"onlinerna/nn/op"
)

// conv is the shape of a convolution.
type conv struct {
	n, c, h, w, o, kh, kw int
	stride, pad, dilation [2]int
	groups                int
}

func (v conv) attributes() op.Conv2D {
	return op.Conv2D{Stride: v.stride, Pad: v.pad, Dilation: v.dilation, Groups: v.groups}
}

// size is the height and width of the result, or not positive where the kernel does not fit.
func (v conv) size() (h, w int) {
	at := func(d, x, k int) int {
		span := x + 2*v.pad[d] - v.dilation[d]*(k-1) - 1
		if span < 0 {
			return 0
		}
		return span/v.stride[d] + 1
	}
	return at(0, v.h, v.kh), at(1, v.w, v.kw)
}

// square is a convolution with as many rows as columns in everything, dilation 1 and one group.
func square(n, c, h, o, k, stride, pad int) conv {
	return conv{n, c, h, h, o, k, k, [2]int{stride, stride}, [2]int{pad, pad}, [2]int{1, 1}, 1}
}

// line is a convolution that keeps the extent, with an odd kernel.
func line(n, c, h, o, kh, kw int) conv {
	return conv{n, c, h, h, o, kh, kw, [2]int{1, 1}, [2]int{kh / 2, kw / 2}, [2]int{1, 1}, 1}
}

// depthwise is a convolution with a group for each channel.
func depthwise(n, c, h, k, stride, pad int) conv {
	v := square(n, c, h, c, k, stride, pad)
	v.groups = c
	return v
}

// grouped is v in groups.
func grouped(groups int, v conv) conv {
	v.groups = groups
	return v
}

// convolutions are the shapes of the golden vectors, those of real nets, and random ones.
func convolutions() []conv {
	all := []conv{
		square(2, 3, 8, 4, 1, 1, 0),
		square(2, 8, 7, 6, 1, 1, 0),
		square(1, 8, 8, 5, 1, 2, 0),
		square(2, 4, 8, 6, 3, 1, 1),
		square(2, 4, 8, 6, 3, 1, 0),
		square(2, 4, 9, 6, 3, 2, 1),
		square(2, 4, 8, 6, 3, 2, 1),
		square(1, 3, 32, 8, 7, 2, 3),
		square(2, 1, 28, 6, 5, 1, 2),
		square(2, 6, 14, 8, 5, 1, 0),
		square(3, 17, 5, 19, 3, 1, 1),
		square(1, 5, 3, 7, 3, 1, 0),
		square(1, 4, 6, 4, 3, 3, 0),
		square(1, 64, 7, 32, 3, 1, 1),
		square(1, 32, 2, 40, 3, 2, 1),
		square(1, 2, 8, 3, 3, 1, 2),
		square(1, 33, 1, 16, 1, 1, 0),  // a pixel
		square(5, 1, 1, 1, 3, 1, 1),    // a kernel that is mostly outside
		square(3, 24, 1, 40, 3, 2, 1),  // of images of one pixel
		square(3, 24, 2, 40, 3, 2, 1),  // to images of one pixel
		square(2, 16, 7, 64, 1, 1, 0),  // bottleneck, out
		square(2, 64, 7, 16, 1, 1, 0),  // bottleneck, in
		square(2, 48, 8, 96, 1, 2, 0),  // down-sampling shortcut
		square(3, 16, 12, 16, 3, 1, 1), // CIFAR ResNet
		square(1, 64, 9, 65, 3, 2, 1),
		square(1, 130, 4, 33, 3, 1, 1), // a long inner product
		square(1, 3, 35, 64, 7, 2, 3),  // stem
		square(2, 3, 4, 5, 2, 1, 1),    // an even kernel
		square(2, 5, 7, 3, 2, 3, 0),    // a stride that skips pixels
		square(2, 32, 20, 32, 3, 1, 1), // many pieces of work
		{2, 6, 7, 9, 4, 1, 1, [2]int{2, 2}, [2]int{0, 0}, [2]int{1, 1}, 1},
		{1, 3, 31, 33, 8, 7, 7, [2]int{2, 2}, [2]int{3, 3}, [2]int{1, 1}, 1},
		{3, 290, 10, 10, 162, 1, 1, [2]int{1, 1}, [2]int{0, 0}, [2]int{1, 1}, 2},
		{2, 8, 8, 8, 8, 3, 3, [2]int{1, 1}, [2]int{1, 1}, [2]int{1, 1}, 8},
		{2, 8, 8, 8, 12, 3, 3, [2]int{1, 1}, [2]int{1, 1}, [2]int{1, 1}, 4},
		{2, 32, 7, 7, 32, 3, 3, [2]int{2, 2}, [2]int{1, 1}, [2]int{1, 1}, 2},
		{2, 4, 10, 10, 6, 3, 3, [2]int{1, 1}, [2]int{2, 2}, [2]int{2, 2}, 1},
		{2, 4, 13, 13, 6, 3, 3, [2]int{2, 2}, [2]int{2, 2}, [2]int{2, 2}, 1},
		{1, 4, 9, 12, 6, 3, 5, [2]int{1, 2}, [2]int{1, 2}, [2]int{1, 1}, 1},
		{1, 4, 11, 8, 6, 3, 3, [2]int{2, 1}, [2]int{0, 1}, [2]int{1, 2}, 2},
		depthwise(2, 33, 9, 3, 1, 1),
		depthwise(3, 19, 12, 3, 2, 1),
		depthwise(1, 72, 11, 5, 1, 2),
		depthwise(2, 40, 14, 5, 2, 2),
		depthwise(2, 24, 3, 7, 1, 3), // no pixel sees the whole kernel
		depthwise(2, 17, 7, 2, 3, 0), // a stride that skips pixels
		depthwise(40, 6, 5, 3, 1, 1), // many images
		depthwise(2, 24, 9, 3, 2, 1), // an odd width
		depthwise(3, 16, 1, 3, 1, 1), // lines of one pixel
		depthwise(3, 16, 2, 3, 2, 1),
		{2, 20, 9, 13, 20, 3, 5, [2]int{2, 1}, [2]int{2, 3}, [2]int{2, 2}, 20},
		{2, 20, 3, 8, 20, 3, 3, [2]int{1, 1}, [2]int{2, 1}, [2]int{2, 1}, 20},
		{3, 24, 8, 10, 24, 2, 3, [2]int{3, 2}, [2]int{1, 1}, [2]int{1, 1}, 24},
		grouped(4, square(2, 32, 11, 32, 3, 1, 1)), // of 8 channels
		grouped(2, square(3, 16, 6, 32, 3, 1, 1)),
		grouped(4, square(3, 48, 13, 32, 3, 2, 1)),
		grouped(4, square(2, 32, 10, 32, 2, 3, 0)), // a stride that skips pixels
		grouped(2, square(5, 16, 1, 16, 3, 1, 1)),
		grouped(2, square(40, 16, 5, 16, 3, 1, 1)),
		grouped(3, square(2, 72, 7, 72, 3, 1, 1)),  // of 24 channels
		grouped(4, square(2, 64, 3, 64, 5, 1, 2)),  // of 16 channels
		grouped(8, square(2, 32, 15, 32, 3, 1, 1)), // of 4 channels
		grouped(6, square(3, 24, 9, 24, 3, 2, 1)),
		{2, 32, 9, 17, 48, 3, 5, [2]int{3, 2}, [2]int{0, 3}, [2]int{2, 1}, 2},
		{2, 64, 8, 13, 64, 5, 3, [2]int{1, 1}, [2]int{2, 4}, [2]int{1, 3}, 4},
		line(3, 40, 9, 33, 1, 7), line(3, 40, 9, 33, 7, 1), // Inception's
		line(2, 70, 8, 96, 1, 3), line(2, 70, 8, 96, 3, 1),
		line(2, 24, 12, 24, 1, 9), line(2, 24, 12, 24, 9, 1), // as many taps as 3×3
		grouped(24, line(2, 24, 12, 24, 1, 9)), grouped(24, line(2, 24, 12, 24, 9, 1)),
		grouped(3, line(2, 24, 12, 24, 1, 9)),
	}
	r := newRand("convolutions")
	for len(all) < 97 {
		v := randomConv(r)
		if h, w := v.size(); h > 0 && w > 0 {
			all = append(all, v)
		}
	}
	return all
}

func randomConv(r *rand.Rand) conv {
	pick := func(of ...int) int { return of[r.IntN(len(of))] }
	g := pick(1, 1, 1, 1, 2, 3)
	return conv{
		n: pick(1, 2, 3), c: g * pick(1, 3, 5, 8, 16, 17), h: 1 + r.IntN(10), w: 1 + r.IntN(18),
		o: g * pick(1, 3, 5, 8, 16, 17, 33), kh: pick(1, 2, 3, 5), kw: pick(1, 2, 3, 5),
		stride: [2]int{pick(1, 1, 2, 3), pick(1, 1, 2, 3)}, pad: [2]int{r.IntN(4), r.IntN(4)},
		dilation: [2]int{pick(1, 1, 2), pick(1, 1, 3)}, groups: g,
	}
}

func convCases() []opCase {
	var all []opCase
	one := uniform(-1, 1)
	for i, v := range convolutions() {
		o := v.attributes()
		h, w := v.size()
		x, dy := data(one, v.n, v.c, v.h, v.w), data(one, v.n, v.o, h, w)
		k := weight(uniform(-.5, .5), v.o, v.c/v.groups, v.kh, v.kw)
		forward := opCase{op: o, in: []operand{x, k}}
		if i%2 == 1 {
			forward.in = append(forward.in, weight(one, v.o))
		}
		all = append(all, forward,
			opCase{op: op.Conv2DGradInput{Conv2D: o, Input: x.shape}, in: []operand{k, dy}},
			opCase{op: op.Conv2DGradWeight{Conv2D: o, Weight: k.shape}, in: []operand{x, dy}, weight: true})
	}
	// Zero values of the attributes mean 1.
	return append(all, opCase{op: op.Conv2D{}, in: []operand{data(one, 2, 3, 5, 4), weight(one, 4, 3, 3, 2)}})
}
