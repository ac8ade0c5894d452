package ranks

import (
	"strings"
	"testing"
)

// look is a lookup in "NAME=value NAME=value".
func look(env string) func(string) (string, bool) {
	m := map[string]string{}
	for _, f := range strings.Fields(env) {
		k, v, _ := strings.Cut(f, "=")
		m[k] = v
	}
	return func(k string) (string, bool) { v, ok := m[k]; return v, ok }
}

func TestDetect(t *testing.T) {
	for name, c := range map[string]struct {
		env  string
		want World
		err  string
	}{
		"nothing": {},
		"mpirun of Open MPI": {
			env: "OMPI_COMM_WORLD_SIZE=4 OMPI_COMM_WORLD_RANK=3 OMPI_COMM_WORLD_LOCAL_RANK=1 OMPI_COMM_WORLD_NODE_RANK=1 " +
				"PMIX_RANK=3 PMIX_NAMESPACE=x",
			want: World{"mpirun of Open MPI", "mpi", "openmpi", 3, 4, 1, "", ""}},
		"mpirun of MPICH": {
			env:  "PMI_RANK=1 PMI_SIZE=2 PMI_FD=7 MPI_LOCALRANKID=1 MPI_LOCALNRANKS=2",
			want: World{"mpirun of MPICH", "mpi", "mpich", 1, 2, 1, "", ""}},
		"Cray": {
			env:  "PMI_RANK=5 PMI_SIZE=8 PMI_LOCAL_RANK=2 PMI_LOCAL_SIZE=3",
			want: World{"mpirun of MPICH", "mpi", "mpich", 5, 8, 2, "", ""}},
		"srun": {
			env:  "SLURM_JOB_ID=1 SLURM_NTASKS=128 SLURM_PROCID=9 SLURM_LOCALID=1 SLURM_NODEID=1 SLURM_STEP_NUM_TASKS=16",
			want: World{"srun", "mpi", "", 9, 16, 1, "", ""}},
		"srun with PMI": {
			env:  "SLURM_PROCID=9 SLURM_LOCALID=1 SLURM_STEP_NUM_TASKS=16 PMI_RANK=9 PMI_SIZE=16",
			want: World{"srun", "mpi", "", 9, 16, 1, "", ""}},
		"a shell in a Slurm allocation": {env: "SLURM_JOB_ID=1 SLURM_NTASKS=128 SLURM_NNODES=16"},
		"a batch script": {
			env: "SLURM_JOB_ID=1 SLURM_NTASKS=128 SLURM_PROCID=0 SLURM_LOCALID=0 SLURM_NODEID=0"},
		"an interactive step": {
			env:  "SLURM_JOB_ID=1 SLURM_NTASKS=8 SLURM_PROCID=0 SLURM_STEP_NUM_TASKS=1",
			want: World{"srun", "mpi", "", 0, 1, -1, "", ""}},
		"mpirun in a Slurm job": {
			env:  "SLURM_PROCID=0 SLURM_STEP_NUM_TASKS=2 OMPI_COMM_WORLD_SIZE=16 OMPI_COMM_WORLD_RANK=12",
			want: World{"mpirun of Open MPI", "mpi", "openmpi", 12, 16, -1, "", ""}},
		"torchrun": {
			env: "TORCHELASTIC_RUN_ID=none RANK=3 LOCAL_RANK=1 WORLD_SIZE=4 LOCAL_WORLD_SIZE=2 GROUP_RANK=1 " +
				"MASTER_ADDR=node1 MASTER_PORT=29500",
			want: World{"torchrun", "nccl", "", 3, 4, 1, "tcp", "node1:29500"}},
		"torchrun that listens itself": {
			env: "TORCHELASTIC_RUN_ID=none TORCHELASTIC_USE_AGENT_STORE=True RANK=0 LOCAL_RANK=0 WORLD_SIZE=2 " +
				"MASTER_ADDR=n MASTER_PORT=29500",
			want: World{"torchrun", "nccl", "", 0, 2, 0, "tcp", "n:29501"}},
		"cuda:all in a pod": {
			env:  "RNA_RANK=1 RNA_RANKS=4 RNA_RANKS_SOCKET=/tmp/s RANK=0 WORLD_SIZE=1 MASTER_ADDR=a MASTER_PORT=1",
			want: World{"rna", "nccl", "", 1, 4, 1, "unix", "/tmp/s"}},
		"torchrun by srun": {
			env: "TORCHELASTIC_RUN_ID=7 RANK=9 LOCAL_RANK=1 WORLD_SIZE=16 MASTER_ADDR=n MASTER_PORT=1 " +
				"SLURM_PROCID=1 SLURM_STEP_NUM_TASKS=2",
			want: World{"torchrun", "nccl", "", 9, 16, 1, "tcp", "n:1"}},
		"PyTorchJob": {
			env:  "RANK=1 WORLD_SIZE=2 MASTER_ADDR=job-master-0 MASTER_PORT=23456",
			want: World{"torchrun's variables", "nccl", "", 1, 2, -1, "tcp", "job-master-0:23456"}},
		"mpirun in a pod": {
			env:  "RANK=0 WORLD_SIZE=1 MASTER_ADDR=a MASTER_PORT=1 OMPI_COMM_WORLD_SIZE=4 OMPI_COMM_WORLD_RANK=2",
			want: World{"mpirun of Open MPI", "mpi", "openmpi", 2, 4, -1, "", ""}},
		"PMIx":                  {env: "PMIX_RANK=1 PMIX_NAMESPACE=x", want: World{"PMIx", "mpi", "", 1, 0, -1, "", ""}},
		"RANK of something":     {env: "RANK=7 WORLD_SIZE=9"},
		"a rank is missing":     {env: "OMPI_COMM_WORLD_SIZE=4", err: "OMPI_COMM_WORLD_RANK is missing"},
		"a size is missing":     {env: "RANK=0 MASTER_ADDR=a MASTER_PORT=1", err: "WORLD_SIZE is missing"},
		"a rank too large":      {env: "PMI_RANK=4 PMI_SIZE=4", err: "PMI_RANK=4 is not below PMI_SIZE=4"},
		"no rank but letters":   {env: "PMI_RANK=x PMI_SIZE=4", err: `PMI_RANK="x" is no number`},
		"a negative rank":       {env: "PMI_RANK=-1 PMI_SIZE=4", err: `PMI_RANK="-1" is no number`},
		"a size of 0":           {env: "PMI_RANK=0 PMI_SIZE=0", err: "PMI_SIZE=0: at least 1"},
		"a local rank of tin":   {env: "PMI_RANK=0 PMI_SIZE=2 MPI_LOCALRANKID=tin", err: "MPI_LOCALRANKID"},
		"a size with a comma":   {env: "SLURM_PROCID=0 SLURM_STEP_NUM_TASKS=2,2", err: "SLURM_STEP_NUM_TASKS"},
		"an empty torchrun run": {env: "TORCHELASTIC_RUN_ID= RANK=0 WORLD_SIZE=2"},
	} {
		t.Run(name, func(t *testing.T) {
			w, err := Detect(look(c.env))
			if c.err != "" {
				if err == nil || !strings.Contains(err.Error(), c.err) {
					t.Fatalf("error %v, want %q", err, c.err)
				}
				return
			}
			if err != nil || w != c.want {
				t.Fatalf("%+v, %v\nwant %+v", w, err, c.want)
			}
		})
	}
}
