// Package cuda is the GPU: what it has ([Look], [Devices]), a device on which nets train ([OpenNet]), and a place for RNA's vectors
// ([Open], [NewSpace]). The build tag gpu switches it on ("make gpu", which needs gcc and no CUDA toolkit); without it
// [Devices], [Open] and [OpenNet] return [ErrNotBuilt] and [Look] says what the machine has.
//
// Below it, arrows point down only:
//
//	net, space          nn/device's Device; rna's Space. Neither knows the other.
//	blas, dnn, nvrtc    cuBLAS, cuDNN, NVRTC: one package a library.
//	driver              contexts, memory, streams, events, graphs, modules, over gorgonia.org/cu.
//	lazy                loads NVIDIA's libraries when they are first called; sim stands in for them in tests.
//	paper               cards of which there is the data sheet alone, in place of NVIDIA's libraries.
//	kernels, number     sources in CUDA C++; precisions and numbers of 16 bits. Leaves.
package cuda
