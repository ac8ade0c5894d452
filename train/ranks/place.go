package ranks

import (
	"fmt"
	"hash/fnv"
	"net"
	"strconv"
	"strings"
)

// Places are the variables by which a launcher of MPI tells where rank 0 runs.
var places = map[string]struct {
	here  []string // the number of ranks on this host
	nodes []string // the hosts, the first of which has rank 0
	job   []string // distinguish jobs on the same host
}{
	"mpirun of Open MPI": {here: []string{"OMPI_COMM_WORLD_LOCAL_SIZE"},
		job: []string{"PMIX_NAMESPACE", "OMPI_MCA_ess_base_jobid", "OMPI_MCA_orte_ess_jobid"}},
	"mpirun of MPICH": {here: []string{"MPI_LOCALNRANKS", "PMI_LOCAL_SIZE"}, job: []string{"PMI_JOBID", "PMI_ID"}},
	"srun": {nodes: []string{"SLURM_STEP_NODELIST", "SLURM_JOB_NODELIST"}, job: []string{"SLURM_JOB_ID",
		"SLURM_STEP_ID"}},
}

// Meet is the world of ranks that a launcher of MPI has started and that meet without MPI, at an address from the
// environment: MASTER_ADDR and MASTER_PORT if they are set, else the launcher's own host of rank 0 and a port that
// depends on the job.
func (w World) Meet(lookup func(string) (string, bool)) (World, error) {
	p := places[w.Launcher]
	first := func(names []string) string {
		for _, name := range names {
			if s, _ := lookup(name); s != "" {
				return s
			}
		}
		return ""
	}
	host, _ := lookup("MASTER_ADDR")
	if host == "" && w.Size > 0 && first(p.here) == strconv.Itoa(w.Size) {
		host = "127.0.0.1"
	}
	if host == "" {
		host = firstHost(first(p.nodes))
	}
	if host == "" || w.Size == 0 {
		return w, fmt.Errorf("and %s does not tell where rank 0 runs: set MASTER_ADDR to its host, as by mpirun -x "+
			"MASTER_ADDR=HOST or mpirun -genv MASTER_ADDR HOST", w.Launcher)
	}
	port, _ := lookup("MASTER_PORT")
	if port == "" {
		h := fnv.New32a()
		for _, name := range p.job {
			s, _ := lookup(name)
			fmt.Fprintln(h, s)
		}
		port = strconv.Itoa(10000 + int(h.Sum32()%20000)) // below the ports that systems give away
	} else if n, err := strconv.Atoi(port); err != nil || n < 1 || n > 65535 {
		return w, fmt.Errorf("MASTER_PORT=%q is no port: want 1 to 65535", port)
	}
	w.Engine, w.Network, w.Master = "nccl", "tcp", net.JoinHostPort(host, port)
	return w, nil
}

// firstHost is the first host of a list of Slurm's, such as node[08-11,17],other.
func firstHost(list string) string {
	open := strings.IndexAny(list, "[,")
	if open < 0 || list[open] == ',' {
		host, _, _ := strings.Cut(list, ",")
		return host
	}
	inside, rest, closed := strings.Cut(list[open+1:], "]")
	if !closed {
		return ""
	}
	number := inside
	if end := strings.IndexAny(inside, "-,"); end >= 0 {
		number = inside[:end]
	}
	return list[:open] + number + firstHost(suffix(rest))
}

// suffix is the part of a host's name after a bracket.
func suffix(rest string) string {
	if strings.HasPrefix(rest, ",") {
		return ""
	}
	return rest
}
