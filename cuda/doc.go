// Package cuda lists GPUs ([Look], [Devices]), trains nets on them ([OpenNet]) and keeps RNA's vectors in their memory
// ([Open], [NewSpace]). The build tag gpu switches it on ("make gpu", which needs gcc and no CUDA toolkit). Without the
// tag, [Devices], [Open] and [OpenNet] return [ErrNotBuilt], and [Look] still lists the machine's hardware and driver.
//
// Below it, arrows point down only:
//
//	net, space          nn/device's Device; rna's Space. Neither knows the other.
//	blas, dnn, nvrtc    cuBLAS, cuDNN, NVRTC: one package a library.
//	driver              contexts, memory, streams, events, graphs, modules, over gorgonia.org/cu.
//	lazy                loads NVIDIA's libraries when they are first called.
//	kernels, number     sources in CUDA C++; precisions and numbers of 16 bits. Leaves.
//
// The packages in check test all this without a GPU: sim replaces NVIDIA's libraries in tests, datasheet replaces a
// card, ptx interprets the PTX that NVIDIA's compiler writes for kernels, and cudnn asks NVIDIA's cuDNN for plans.
package cuda
