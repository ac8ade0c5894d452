// Package lazy provides the functions of CUDA's libraries as trampolines that load the libraries when they are first
// called: so a binary that uses gorgonia.org/cu links none of them, starts without a GPU, and works with several
// versions of CUDA. The build tag gpu switches the trampolines on; without it there is only the search.
//
// It defines every function that gorgonia.org/cu and the packages below cuda reference (symbols.h), with
// hidden visibility. libcuda.so in this folder, a linker script with only a comment, satisfies the -lcuda of cu.
//
// A function whose library is missing returns an error code: CUDA_ERROR_NO_DEVICE from the driver,
// CUBLAS_STATUS_NOT_INITIALIZED from cuBLAS. Call [Library.Load] first: its error lists the files and folders tried
// and says how to install the library.
package lazy
