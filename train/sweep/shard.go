package sweep

import (
	"errors"
	"fmt"
	"strconv"
	"strings"
)

// launchers are the variables by which launchers number processes: the number, the first number or "", how many.
var launchers = [][3]string{
	{"OMPI_COMM_WORLD_RANK", "", "OMPI_COMM_WORLD_SIZE"},
	{"PMI_RANK", "", "PMI_SIZE"},
	{"SLURM_ARRAY_TASK_ID", "SLURM_ARRAY_TASK_MIN", "SLURM_ARRAY_TASK_COUNT"},
	{"SLURM_PROCID", "", "SLURM_NTASKS"},
}

// ParseShard parses i/n, from 1/n to n/n, or auto, which takes them from the environment of mpirun or Slurm.
func ParseShard(text string, getenv func(string) string) (shard, shards int, err error) {
	if text == "auto" {
		for _, l := range launchers {
			if getenv(l[0]) == "" || getenv(l[2]) == "" {
				continue
			}
			i, err := strconv.Atoi(getenv(l[0]))
			n, err2 := strconv.Atoi(getenv(l[2]))
			from := 0
			if l[1] != "" {
				from, _ = strconv.Atoi(getenv(l[1]))
			}
			if i -= from; errors.Join(err, err2) != nil || i < 0 || i >= n {
				return 0, 0, fmt.Errorf("shard auto: %s %s and %s %s are not a number among others", l[0], getenv(l[0]), l[2],
					getenv(l[2]))
			}
			return i + 1, n, nil
		}
		return 0, 0, errors.New("shard auto: neither mpirun nor Slurm has started this process: give i/n, as 1/4")
	}
	i, n, ok := strings.Cut(text, "/")
	shard, err = strconv.Atoi(i)
	shards, err2 := strconv.Atoi(n)
	if !ok || errors.Join(err, err2) != nil || shard < 1 || shard > shards {
		return 0, 0, fmt.Errorf("shard %q: want i/n, from 1/n to n/n, or auto", text)
	}
	return shard, shards, nil
}
