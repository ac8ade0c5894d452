# Targets need only Go, unless their line says more. The default build is without cgo.
# make help lists the targets with ##, make help-all those with #: too.
export CGO_ENABLED ?= 0

MODEL     ?= resnet50
BATCH     ?= 16
VENV      ?= .venv
WORKLOADS ?=
METHODS   ?=
DEVICE    ?= cpu
TAGS      ?= gpu
KILLS     ?= 20
FUZZ      ?= 60
STUDY     ?= 1
SHARE     ?= 0.03
PACKAGES  ?=
CIFAR10   ?=
RESULTS   ?=
RUNS      ?=
SETS      ?=
MINUTES   ?=
VERSION   ?=
WEIGHTS   ?=
NETS      ?=
SIZES     ?= 8 40
SPEED     ?=
FOLDER    ?= $(if $(TMPDIR),$(TMPDIR),/var/tmp)
IMAGES    ?= ../shared/data/imagenet-sample

.DEFAULT_GOAL := help
.PHONY: help help-all bench bench-conv bench-loader bench-logreg bench-logreg-sparse bench-onnxruntime bench-pytorch bench-serve build \
	check-abi check-amx check-arm64 check-asan check-avx512 check-cudnn check-fuzz check-gpu check-kill check-mca-amd64 \
	check-mca-arm64 check-merge check-merge-scale check-mpi check-nccl check-nets check-onnx check-ptx check-race check-release \
	check-serve check-sim check-soak check-sweep check-tensorboard check-timm fine-tuning generate gpu gpu-kit lint merge-study \
	mutants plans release rna-on-nets sim test

LIST = sed -E 's/^([a-z0-9-]+):.*\#[\#:] (.*)/\1\t\2/' | expand -t 21

help: ## list the usual targets
	@grep -hE '^[a-z0-9-]+:.*\#\# ' $(MAKEFILE_LIST) | $(LIST)

help-all: ## list all targets: checks, comparisons and one-off measurements too
	@grep -hE '^[a-z0-9-]+:.*\#[\#:] ' $(MAKEFILE_LIST) | $(LIST)

build: ## build bin/rna
	go build -o bin/ ./cmd/rna

test: ## vet and test all packages
	go vet ./...
	go test ./...

# The build with GPU support needs gcc and no CUDA: the headers are the repository's own, the libraries are loaded at
# run time.
GPU_ENV = CGO_ENABLED=1 CGO_CFLAGS="-O2 -g -I$(CURDIR)/cuda/include"
# A program that loads libraries lies at a random address, and nothing can change its table of their functions.
HARDENED = -buildmode=pie -ldflags '$(STRIP) -linkmode=external -extldflags "-Wl,-z,relro,-z,now"'

gpu: ## build bin/rna with GPU support; needs gcc, no CUDA toolkit; TAGS=gpu,mpi adds MPI
	@cc=$$(go env CC); command -v $${cc%% *} >/dev/null || { \
		echo "make gpu needs the C compiler $$cc: sudo apt install gcc libc6-dev (Fedora: sudo dnf install gcc)" >&2; exit 1; }
	@echo '#include <dlfcn.h>' | $$(go env CC) -E - >/dev/null 2>&1 || { \
		echo "make gpu needs the C library's headers: sudo apt install libc6-dev (Fedora: sudo dnf install glibc-devel)" >&2; exit 1; }
	$(GPU_ENV) go build $(HARDENED) -tags $(TAGS) -o bin/ ./cmd/rna

sim: ## build and check the stand-in for NVIDIA's libraries; needs g++
	$(MAKE) --no-print-directory -C cuda/check/sim/src check OUT=$(CURDIR)/bin/sim

check-gpu: sim ## vet and test the GPU code on the stand-in
	$(GPU_ENV) go vet -tags gpu ./cuda/... ./cmd/rna
	$(GPU_ENV) RNA_CUDA_LIBS=$(CURDIR)/bin/sim ONLINERNA_GPU=require go test -tags gpu ./cuda/...
	$(GPU_ENV) RNA_CUDA_LIBS=$(CURDIR)/bin/sim ONLINERNA_GPU=require go test -tags gpu -run OnGPU ./nn/zoo
	$(GPU_ENV) go test -tags gpu -run '^(TestDevices|TestMistakes|TestNothingIsLinked)$$' ./cmd/rna
	$(GPU_ENV) RNA_CUDA_LIBS=$(CURDIR)/bin/sim ONLINERNA_GPU=require go test -tags gpu -run '^(Test.*OnGPU|TestFaultOf.*)$$' ./cmd/rna

check-sim: #: check each memory access of the kernels on a stand-in of its own; slow
	$(MAKE) --no-print-directory -C cuda/check/sim/src check OUT=$(CURDIR)/bin/sim-check CHECK=1
	$(GPU_ENV) RNA_CUDA_LIBS=$(CURDIR)/bin/sim-check ONLINERNA_GPU=require go test -tags gpu -timeout 0 -run '$(value CHECKED)' ./cuda/net ./cuda/space

# Tests with the kernels of normalisation, pooling, fused steps and RNA, and of the bytes that kernels move; CHECKED=.
# runs all tests.
CHECKED ?= ^TestNormOfManyBlocks$|^TestNet$/^float(32|16)$/^ops$/(norm|pool)|^TestFusions$|^TestObserve$/^(lenet|resnet20|bottlenecks)$|^TestSpaceConcurrent$

GPU_KIT = bin/gpu-kit
# The packages whose tests a machine with a GPU runs.
GPU_CHECKED = ./cuda $(addprefix ./cuda/,driver blas dnn nvrtc nccl kernels net space)

plans: gpu #: make cuDNN's plans of ResNet-50 for H100, H200 and A100, for make gpu-kit; downloads 1.4 GB; minutes
	MODEL=resnet50 BATCH=256 scripts/plans.sh bin/plans

gpu-kit: STRIP = -s -w
gpu-kit: ## build bin/gpu-kit: its run.sh tests and measures a GPU machine, without Go
	rm -rf $(GPU_KIT) && mkdir -p $(GPU_KIT)
	$(GPU_ENV) go test -c -tags gpu -trimpath -ldflags '-s -w' -o $(GPU_KIT)/ $(GPU_CHECKED)
	$(GPU_ENV) go build $(HARDENED) -tags gpu -trimpath -o $(GPU_KIT)/ ./cmd/rna
	gzip $(GPU_KIT)/*.test $(GPU_KIT)/rna
	cp scripts/gpu_check.sh $(GPU_KIT)/run.sh
	cp scripts/bench_pytorch.py scripts/bench_compare.py $(GPU_KIT)/
	if [ -d bin/plans ]; then cp -r bin/plans $(GPU_KIT)/; fi
	@bytes=$$(find $(GPU_KIT) -type f -exec cat {} + | wc -c); echo "$(GPU_KIT): $$((bytes / 1000000)) MB"; test $$bytes -lt 50000000

check-ptx: sim #: interpret NVRTC's PTX and compare with the stand-in, without a GPU; downloads 130 MB
	scripts/ptx_check.sh

check-cudnn: #: write the table of cuDNN's plans for sm_80, 90 and 100, without a GPU; downloads 1.4 GB
	scripts/cudnn_check.sh -compile none -table cuda/check/cudnn/table.tsv
	scripts/cudnn_check.sh -update -models resnet50 -precisions bfloat16 -batches 256 -table cuda/check/cudnn/table.tsv
	scripts/cudnn_check.sh -update -models resnet50 -precisions float16 -batches 256 -cards h100 -table cuda/check/cudnn/table.tsv
	scripts/cudnn_check.sh -update -models vit_b_16,convnext_tiny -precisions bfloat16,float16 -batches 256 -table cuda/check/cudnn/table.tsv

check-kill: #: kill ranks at any time, and resume, under both MPIs: KILLS=20 each; minutes
	ONLINERNA_KILLS=$(KILLS) ONLINERNA_MPI=require go test -tags mpi -count=1 -timeout 0 -run '^TestKillAnyTime$$' -v ./cmd/rna

check-nccl: sim #: call NCCL 2.18 and 2.32 without a GPU; downloads 520 MB
	scripts/nccl_check.sh

check-mpi: #: the tests of MPI with Open MPI 5, MPICH 5 and Intel MPI; downloads 150 MB
	scripts/mpi_check.sh

check-abi: #: compare cuda/include with NVIDIA's headers; downloads 3 GB
	python3 scripts/abi_check.py

release: ## build archives for linux, darwin and windows, and an image for containers, in bin/release: VERSION=v1.2.3
	rm -rf bin/release
	go run ./internal/release -version '$(VERSION)'

check-release: release $(VENV)/release #: have CycloneDX's schema, skopeo and umoci judge the release
	$(VENV)/bin/python scripts/release_check.py bin/release

generate: ## write the kernels' assembly again; needs module avo
	go generate ./internal/simd/... ./nn/device/cpu/... ./rna/... ./data/...

bench: build ## measure training on the CPU by kind of op: MODEL=resnet50 BATCH=16
	bin/rna bench train --model $(MODEL) --batch $(BATCH)

bench-pytorch: $(if $(filter cpu,$(DEVICE)),build,gpu) $(VENV)/timm ## compare with PyTorch in one run: WORKLOADS="resnet50 lenet", DEVICE=cuda
	$(VENV)/bin/python scripts/bench_compare.py --rna bin/rna --device $(DEVICE) $(WORKLOADS)

bench-conv: $(VENV)/ready #: compare convolutions with PyTorch's one by one: NET=grouped LEVEL=avx2
	go test -c -o bin/cpu.test ./nn/device/cpu
	$(VENV)/bin/python scripts/bench_conv.py $(NET) $(addprefix --level ,$(LEVEL))

bench-onnxruntime: build $(VENV)/timm $(VENV)/onnx ## compare evaluation with onnxruntime: WORKLOADS="resnet50-eval-b1"
	$(VENV)/bin/python scripts/bench_compare.py --rna bin/rna --rival onnxruntime $(WORKLOADS)

bench-loader: build $(VENV)/ready #: compare the loader with PyTorch's DataLoader in one run: IMAGES=folder
	$(VENV)/bin/python scripts/bench_loader.py $(IMAGES) --rna bin/rna

bench-serve: build #: compare rna serve at 64 clients with rna predict: WEIGHTS=file IMAGES=folder of JPEGs
	ONLINERNA_SERVE='$(CURDIR)/bin/rna $(abspath $(WEIGHTS)) $(abspath $(IMAGES))' \
		go test ./train/serve -run '^TestSpeed$$' -count=1 -timeout 0 -v

check-sweep: $(VENV)/sweep #: compare the searches of rna sweep with Optuna's on functions, and on the sweep of a grid in RUNS=folder; minutes
	mkdir -p bin
	ONLINERNA_SWEEPS=$(CURDIR)/bin/sweeps.json ONLINERNA_RECORDED='$(if $(RUNS),$(abspath $(RUNS)))' \
		go test ./train/sweep -run '^(TestSearch|TestRecorded)$$' -count=1 -timeout 0
	$(VENV)/bin/python scripts/sweep_check.py bin/sweeps.json $(if $(RUNS),bin/recorded.json)

check-serve: $(VENV)/serve #: have Prometheus' own parsers judge the metrics of rna serve
	go test -c -o bin/serve.test ./train/serve
	ONLINERNA_METRICS=$(CURDIR)/bin/metrics.txt bin/serve.test -test.run '^TestMetrics$$'
	$(VENV)/bin/python -c 'import sys; from prometheus_client.parser import text_string_to_metric_families as p; \
		print(len(list(p(sys.stdin.read()))), "metrics by prometheus_client")' <bin/metrics.txt
	if command -v promtool >/dev/null; then promtool check metrics <bin/metrics.txt; fi

bench-logreg: build $(VENV)/numpy #: compare the convex methods with numpy in one run: METHODS="gd lbfgs", default all
	$(VENV)/bin/python scripts/logreg_numpy.py --rna bin/rna $(METHODS)

bench-logreg-sparse: build $(VENV)/numpy #: compare them with scipy.sparse, on data of sido0's size
	$(VENV)/bin/python scripts/logreg_numpy.py --rna bin/rna --sparse --iterations 100 --rounds 3 $(METHODS)

check-onnx: $(VENV)/onnx #: have onnx.checker and onnxruntime judge the files of rna export
	ONNX_PYTHON=$(abspath $(VENV))/bin/python go test ./train/network -run '^TestONNXRuntime$$' -count=1 -v

check-nets: $(VENV)/timm #: compare whole nets with torchvision's and timm's: NETS="vgg16 mobilenet_v2", default all, which takes long
	rm -rf bin/nets
	$(VENV)/bin/python nn/zoo/testdata/make.py bin/nets $(NETS)
	ONLINERNA_TORCHVISION=$(CURDIR)/bin/nets go test ./nn/zoo -run '^TestTorchvision$$' -count=1 -timeout 0 -v

check-timm: $(VENV)/timm $(VENV)/transformers #: compare predictions by files as timm and transformers have them on Hugging Face's hub
	$(VENV)/bin/python nn/zoo/testdata/timm_files.py bin/timm
	$(VENV)/bin/python train/network/testdata/transformers_files.py bin/timm
	ONLINERNA_TIMM=$(CURDIR)/bin/timm go test ./train/network -run '^TestTimm$$' -count=1 -v

check-arm64: #: run the tests of arm64's kernels under qemu; installs qemu-user where it is missing
	scripts/arm64_check.sh

check-avx512: #: run the tests of AVX-512's kernels under Bochs, which it builds; minutes
	scripts/bochs_check.sh avx512bf16

check-amx: #: run the tests of AMX's kernels under Bochs, which it builds; minutes
	scripts/bochs_check.sh amx

check-merge: build $(VENV)/merge #: compare rna merge with mergekit, ema-pytorch, PyTorch, numpy, gguf, transformers, peft, Orbax and Keras; downloads 600 MB or more
	$(VENV)/bin/python scripts/merge_check.py bin/rna

check-tensorboard: build $(VENV)/tensorboard #: read a run's files for TensorBoard by TensorBoard's own reader
	$(VENV)/bin/python scripts/tensorboard_check.py bin/rna

check-merge-scale: build #: merge models of 8 and 40 GB within 1 GB of memory, in 45 GB of disk; SIZES, FOLDER; SPEED=1.2: beside plain reads and writes
	python3 scripts/merge_scale.py bin/rna $(FOLDER) $(if $(SPEED),speed $(SPEED),memory $(SIZES))

merge-study: build #: compare merging with a decay of the learning rate, on small nets, as Markdown tables; CIFAR10=folder
	python3 scripts/merge_study.py bin/rna $(if $(CIFAR10),--cifar10 $(CIFAR10))

check-mca-arm64: #: estimate the speed of arm64's inner loops by llvm-mca; needs Debian's llvm-22
	python3 scripts/mca.py --arch arm64 --least 0.8

check-mca-amd64: #: estimate the speed of amd64's products by llvm-mca
	python3 scripts/mca.py --arch amd64

# Without U1000, which does not know other build tags, assembly, and methods behind type parameters, and without S1016,
# because ops with equal fields are still different ops.
lint: ## run staticcheck
	CGO_ENABLED=0 go run honnef.co/go/tools/cmd/staticcheck@v0.7.0 -checks inherit,-U1000,-S1016 ./...

mutants: ## plant faults in RNA's packages, and count those that tests miss: SHARE=0.03 of them, SEED=1 others, PACKAGES="rna train/report"
	go run ./internal/mutants -share $(SHARE) $(if $(SEED),-seed $(SEED)) $(PACKAGES)

check-asan: gpu-kit #: run the GPU code's tests with AddressSanitizer and UBSan; needs g++; minutes
	$(MAKE) --no-print-directory -C cuda/check/sim/src all OUT=$(CURDIR)/bin/sim-asan SANITIZE=address,undefined
	gunzip -f $(GPU_KIT)/*.gz
	set -e; for test in $(GPU_KIT)/*.test; do \
		ONLINERNA_GPU=require RNA_CUDA_LIBS=$(CURDIR)/bin/sim-asan ASAN_OPTIONS=detect_leaks=0 LD_PRELOAD=$$(g++ -print-file-name=libasan.so) \
			$$test -test.skip '^TestNetGolden$$|^TestObserve$$'; \
	done

check-race: ## run all tests under the race detector; needs gcc; builds Gorgonia for it: minutes
	CGO_ENABLED=1 go test -race -short -timeout 60m ./...

check-fuzz: ## give each fuzz target of the readers its part of FUZZ=60 seconds
	scripts/fuzz.sh $(FUZZ)

check-soak: #: disturb short runs, resume and compare them; KILLS=200 FLIPS=300 SEED=1
	SOAK_KILLS=$(KILLS) SOAK_FLIPS=$(FLIPS) SOAK_SEED=$(SEED) go test -tags soak -run '^TestSoak' -count=1 -timeout 0 -v ./cmd/rna
	SOAK_KILLS=$(KILLS) go test ./train -run '^TestFaults$$' -count=1 -timeout 0 -v
	SOAK_FLIPS=all go test ./train/merge ./train/statedict -run '^Test(Kill|Full|Flips|Mutations)$$' -count=1 -timeout 0 -v

fine-tuning: #: measure the defaults of --init, or go on in RESULTS=folder; SETS=lenet MINUTES=20, STUDY=choice
	ONLINERNA_STUDY=$(STUDY) ONLINERNA_CIFAR10=$(abspath $(CIFAR10)) ONLINERNA_FINETUNE=$(abspath $(or $(RESULTS),runs/fine-tuning)) \
		ONLINERNA_FINETUNE_SETS='$(SETS)' ONLINERNA_FINETUNE_MINUTES=$(MINUTES) go test ./train -run '^TestFineTune(Study|Choice)$$' -count=1 -timeout 0 -v

rna-on-nets: #: measure RNA on small nets, as Markdown tables; CIFAR10=folder, STUDY=rivals, optimisers or quick, SETS=LeNet MINUTES=20, RESULTS=folder for new results
	ONLINERNA_STUDY=$(STUDY) ONLINERNA_CIFAR10=$(abspath $(CIFAR10)) ONLINERNA_SETS='$(SETS)' ONLINERNA_MINUTES=$(MINUTES) \
		ONLINERNA_RESULTS=$(abspath $(RESULTS)) go test ./train -run '^Test(Study|Rivals|Optimisers)$$' -count=1 -timeout 0 -v

$(VENV)/ready:
	python3 -m venv $(VENV)
	$(VENV)/bin/pip install --quiet torch torchvision
	touch $@

$(VENV)/timm: $(VENV)/ready
	$(VENV)/bin/pip install --quiet timm safetensors
	touch $@

$(VENV)/transformers: $(VENV)/ready
	$(VENV)/bin/pip install --quiet transformers
	touch $@

$(VENV)/onnx:
	python3 -m venv $(VENV)
	$(VENV)/bin/pip install --quiet numpy onnx onnxruntime
	touch $@

$(VENV)/merge:
	python3 -m venv $(VENV)
	$(VENV)/bin/pip install --quiet torch safetensors transformers gguf mergekit ema-pytorch peft jax flax orbax-checkpoint keras h5py
	touch $@

$(VENV)/sweep:
	python3 -m venv $(VENV)
	$(VENV)/bin/pip install --quiet optuna scipy
	touch $@

$(VENV)/release:
	python3 -m venv $(VENV)
	$(VENV)/bin/pip install --quiet 'cyclonedx-python-lib[json-validation]'
	touch $@

$(VENV)/serve:
	python3 -m venv $(VENV)
	$(VENV)/bin/pip install --quiet prometheus_client
	touch $@

$(VENV)/tensorboard:
	python3 -m venv $(VENV)
	$(VENV)/bin/pip install --quiet tensorboard
	touch $@

$(VENV)/numpy:
	python3 -m venv $(VENV)
	$(VENV)/bin/pip install --quiet numpy scipy
	touch $@
