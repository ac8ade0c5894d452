package ranks

import (
	"fmt"
	"net"
	"strconv"
)

// World describes this process's place among the ranks, as the launcher's environment gives it.
type World struct {
	Launcher string // "torchrun", "mpirun (Open MPI)", …; "" for none
	// Engine is the library that the launcher starts: "mpi" or "nccl".
	Engine string
	// Implementation is the MPI family of the launcher if it works with only one: "openmpi" or "mpich".
	Implementation string

	Rank, Size int // Size is 0 if only the library knows it
	Local      int // rank on its host, −1 if unknown
	// Network and Master are the meeting place of NCCL's ranks: "tcp" and host:port, or "unix" and a file.
	Network, Master string
}

// Many reports whether there is, or may be, more than one rank.
func (w World) Many() bool { return w.Launcher != "" && w.Size != 1 }

// launcher names the variables of one launcher.
type launcher struct {
	name, engine, implementation string
	rank, size                   string
	local                        []string
	needs                        []string // other variables that must be set for this launcher
}

// Own is this program as the launcher of its own ranks, one for each GPU of the machine, by these variables.
const (
	Own       = "rna"
	OwnRank   = "RNA_RANK"
	OwnSize   = "RNA_RANKS"
	OwnSocket = "RNA_RANKS_SOCKET"
)

// These variables work with any launcher: a shared secret of the ranks, a file with it, and the host where rank 0
// listens instead of the launcher's.
const (
	KeyVar     = "RNA_RANKS_KEY"
	KeyFileVar = "RNA_RANKS_KEY_FILE"
	ListenVar  = "RNA_RANKS_LISTEN"
)

// launchers are tried in order: a launcher that runs inside another comes first. A Slurm allocation alone, with
// SLURM_NTASKS, starts no ranks: only a step of srun does.
var launchers = []launcher{
	{name: Own, engine: "nccl", rank: OwnRank, size: OwnSize, local: []string{OwnRank}, needs: []string{OwnSocket}},
	{name: "torchrun", engine: "nccl", rank: "RANK", size: "WORLD_SIZE", local: []string{"LOCAL_RANK"},
		needs: []string{"TORCHELASTIC_RUN_ID"}},
	{name: "mpirun of Open MPI", engine: "mpi", implementation: "openmpi", rank: "OMPI_COMM_WORLD_RANK",
		size: "OMPI_COMM_WORLD_SIZE", local: []string{"OMPI_COMM_WORLD_LOCAL_RANK"}},
	{name: "torchrun's variables", engine: "nccl", rank: "RANK", size: "WORLD_SIZE", local: []string{"LOCAL_RANK"},
		needs: []string{"MASTER_ADDR", "MASTER_PORT"}},
	{name: "srun", engine: "mpi", rank: "SLURM_PROCID", size: "SLURM_STEP_NUM_TASKS", local: []string{"SLURM_LOCALID"}},
	{name: "mpirun of MPICH", engine: "mpi", implementation: "mpich", rank: "PMI_RANK", size: "PMI_SIZE",
		local: []string{"MPI_LOCALRANKID", "PMI_LOCAL_RANK"}},
	{name: "PMIx", engine: "mpi", rank: "PMIX_RANK", needs: []string{"PMIX_NAMESPACE"}},
}

// Detect finds out from the environment, read with lookup as os.LookupEnv, how this process was started. The zero World
// is a single process. Contradictory variables of a launcher are an error.
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
		if l.name == "srun" { // the allocation's own shell has SLURM_PROCID, too
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
			port++ // torchrun itself listens at MASTER_PORT
		}
		w.Network, w.Master = "tcp", net.JoinHostPort(addr, strconv.Itoa(port))
	}
	return w, nil
}
