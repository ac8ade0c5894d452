package ranks

import (
	"fmt"
	"net"
	"strconv"
)

// World is what a launcher has told a process by its environment.
type World struct {
	Launcher string // "torchrun", "mpirun (Open MPI)", …; "" for none
	// Engine says which library the launcher starts up: "mpi" or "nccl".
	Engine string
	// Implementation is the family of MPI that belongs to the launcher, where only one does: "openmpi" or "mpich".
	Implementation string

	Rank, Size int // Size is 0 where only the library knows it
	Local      int // number of the rank on its host, −1 if it is not said
	// Network and Master are where ranks of NCCL meet: "tcp" and host:port, or "unix" and a file.
	Network, Master string
}

// Many says whether there is more than one rank, or may be.
func (w World) Many() bool { return w.Launcher != "" && w.Size != 1 }

// launcher is one way of being started: names of variables.
type launcher struct {
	name, engine, implementation string
	rank, size                   string
	local                        []string
	needs                        []string // other variables, without which it is something else
}

// Own is the launcher that a program is for its own ranks, one a GPU of the machine, by these variables.
const (
	Own       = "rna"
	OwnRank   = "RNA_RANK"
	OwnSize   = "RNA_RANKS"
	OwnSocket = "RNA_RANKS_SOCKET"
)

// These variables are of any launcher: a secret that the ranks have in common, a file with it, and the host at which rank 0
// listens in place of the launcher's.
const (
	KeyVar     = "RNA_RANKS_KEY"
	KeyFileVar = "RNA_RANKS_KEY_FILE"
	ListenVar  = "RNA_RANKS_LISTEN"
)

// launchers are asked in turn: what starts processes inside of what another has started comes first. A Slurm allocation alone, SLURM_NTASKS, is no
// start of ranks: only a step of srun's is.
var launchers = []launcher{
	{name: Own, engine: "nccl", rank: OwnRank, size: OwnSize, local: []string{OwnRank}, needs: []string{OwnSocket}},
	{name: "torchrun", engine: "nccl", rank: "RANK", size: "WORLD_SIZE", local: []string{"LOCAL_RANK"}, needs: []string{"TORCHELASTIC_RUN_ID"}},
	{name: "mpirun of Open MPI", engine: "mpi", implementation: "openmpi", rank: "OMPI_COMM_WORLD_RANK", size: "OMPI_COMM_WORLD_SIZE", local: []string{"OMPI_COMM_WORLD_LOCAL_RANK"}},
	{name: "torchrun's variables", engine: "nccl", rank: "RANK", size: "WORLD_SIZE", local: []string{"LOCAL_RANK"}, needs: []string{"MASTER_ADDR", "MASTER_PORT"}},
	{name: "srun", engine: "mpi", rank: "SLURM_PROCID", size: "SLURM_STEP_NUM_TASKS", local: []string{"SLURM_LOCALID"}},
	{name: "mpirun of MPICH", engine: "mpi", implementation: "mpich", rank: "PMI_RANK", size: "PMI_SIZE", local: []string{"MPI_LOCALRANKID", "PMI_LOCAL_RANK"}},
	{name: "PMIx", engine: "mpi", rank: "PMIX_RANK", needs: []string{"PMIX_NAMESPACE"}},
}

// Detect finds out how a process was started from its environment, as os.LookupEnv tells it. The zero World is a process of its own. Variables of a launcher that
// contradict each other are an error.
func Detect(lookup func(string) (string, bool)) (World, error) {
	for _, l := range launchers {
		w, err := l.detect(lookup)
		if err != nil || w.Launcher != "" {
			return w, err
		}
	}
	return World{}, nil
}

func (l launcher) detect(lookup func(string) (string, bool)) (World, error) {
	for _, name := range l.needs {
		if s, ok := lookup(name); !ok || s == "" {
			return World{}, nil
		}
	}
	number := func(name string) (n int, ok bool, err error) {
		s, ok := lookup(name)
		if !ok || name == "" {
			return 0, false, nil
		}
		n, err = strconv.Atoi(s)
		if err != nil || n < 0 {
			return 0, true, fmt.Errorf("%s: %s=%q is no number", l.name, name, s)
		}
		return n, true, nil
	}
	rank, hasRank, err := number(l.rank)
	size, hasSize, err2 := number(l.size)
	switch {
	case !hasRank && !hasSize:
		return World{}, nil
	case err != nil:
		return World{}, err
	case err2 != nil:
		return World{}, err2
	case !hasRank:
		return World{}, fmt.Errorf("%s: %s is set, %s is missing", l.name, l.size, l.rank)
	case !hasSize && l.size != "":
		if l.name == "srun" { // the allocation's own shell has SLURM_PROCID
			return World{}, nil
		}
		return World{}, fmt.Errorf("%s: %s is set, %s is missing", l.name, l.rank, l.size)
	case hasSize && size < 1:
		return World{}, fmt.Errorf("%s: %s=%d: at least 1", l.name, l.size, size)
	case hasSize && rank >= size:
		return World{}, fmt.Errorf("%s: %s=%d is not below %s=%d", l.name, l.rank, rank, l.size, size)
	}
	w := World{Launcher: l.name, Engine: l.engine, Implementation: l.implementation, Rank: rank, Size: size, Local: -1}
	for _, name := range l.local {
		n, ok, err := number(name)
		if err != nil {
			return World{}, err
		}
		if ok {
			w.Local = n
			break
		}
	}
	if l.name == Own {
		w.Network = "unix"
		w.Master, _ = lookup(OwnSocket)
	} else if l.engine == "nccl" {
		addr, _ := lookup("MASTER_ADDR")
		port, _, err := number("MASTER_PORT")
		if err != nil {
			return World{}, err
		}
		if agent, _ := lookup("TORCHELASTIC_USE_AGENT_STORE"); agent == "True" {
			port++ // torchrun itself listens at the other
		}
		w.Network, w.Master = "tcp", net.JoinHostPort(addr, strconv.Itoa(port))
	}
	return w, nil
}
