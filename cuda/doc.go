// Package cuda is the GPU: what it has ([Look], [Devices]), a device on which nets train ([OpenNet]), and a place for RNA's vectors
// ([Open], [NewSpace]). The build tag gpu switches it on ("make gpu", which needs gcc and no CUDA toolkit); without it
// [Devices], [Open] and [OpenNet] return [ErrNotBuilt] and [Look] says what the machine has.
//
// Below it, arrows point down only:
//
//	net, space          nn/device's Device; rna's Space. Neither knows the other.
//	blas, dnn, nvrtc    cuBLAS, cuDNN, NVRTC: one package a library.
//	driver              contexts, memory, streams, events, graphs, modules, over gorgonia.org/cu.
//	lazy                loads NVIDIA's libraries when they are first called.
//	kernels, number     sources in CUDA C++; precisions and numbers of 16 bits. Leaves.
//
// The packages below check judge all this without a GPU: sim stands in for NVIDIA's libraries in tests, datasheet for
// a card, ptx interprets what NVIDIA's compiler makes of kernels, and cudnn asks NVIDIA's cuDNN for plans.
package cuda
