package ranks

import (
	"strings"
	"testing"
)

func TestMeet(t *testing.T) {
	const open = "OMPI_COMM_WORLD_SIZE=4 OMPI_COMM_WORLD_RANK=3 PMIX_NAMESPACE=prterun-1"
	const slurm = "SLURM_PROCID=9 SLURM_STEP_NUM_TASKS=16 SLURM_JOB_ID=77 SLURM_STEP_ID=0 MASTER_PORT=9000 "
	for env, want := range map[string]string{
		open + " OMPI_COMM_WORLD_LOCAL_SIZE=4 MASTER_PORT=29500":           "127.0.0.1:29500",
		open + " OMPI_COMM_WORLD_LOCAL_SIZE=2":                             "set MASTER_ADDR",
		open + " OMPI_COMM_WORLD_LOCAL_SIZE=2 MASTER_ADDR=a MASTER_PORT=7": "a:7",
		open + " OMPI_COMM_WORLD_LOCAL_SIZE=4 MASTER_PORT=x":               "MASTER_PORT=\"x\" is no port",
		"PMI_RANK=1 PMI_SIZE=2 MPI_LOCALNRANKS=2 MASTER_PORT=5":            "127.0.0.1:5",
		"PMI_RANK=1 PMI_SIZE=2 PMI_LOCAL_SIZE=1":                           "set MASTER_ADDR",
		slurm + "SLURM_STEP_NODELIST=gpu[008-011,17],other":                "gpu008:9000",
		slurm + "SLURM_STEP_NODELIST=a,b":                                  "a:9000",
		slurm + "SLURM_STEP_NODELIST=rack3":                                "rack3:9000",
		slurm + "SLURM_STEP_NODELIST=n[3,5]-ib,m":                          "n3-ib:9000",
		slurm + "SLURM_STEP_NODELIST=r[1-2]n[04-05]":                       "r1n04:9000",
		slurm + "SLURM_STEP_NODELIST=r[1":                                  "set MASTER_ADDR",
		slurm:                                                              "set MASTER_ADDR",
		"PMIX_RANK=1 PMIX_NAMESPACE=x MASTER_ADDR=a":                       "set MASTER_ADDR",
	} {
		w, err := Detect(look(env))
		if err != nil {
			t.Fatal(err)
		}
		got, err := w.Meet(look(env))
		said := got.Master
		if err != nil {
			said = err.Error()
		} else if got.Engine != "nccl" || got.Network != "tcp" || got.Rank != w.Rank || got.Size != w.Size {
			t.Errorf("%s: %+v", env, got)
		}
		if !strings.Contains(said, want) {
			t.Errorf("%s: %s, want %s", env, said, want)
		}
	}
}

// Ranks of a job meet at one port, those of another at another.
func TestMeetPort(t *testing.T) {
	at := func(job, rank string) string {
		env := "OMPI_COMM_WORLD_SIZE=2 OMPI_COMM_WORLD_LOCAL_SIZE=2 OMPI_COMM_WORLD_RANK=" + rank + " PMIX_NAMESPACE=" + job
		w, err := Detect(look(env))
		if err == nil {
			w, err = w.Meet(look(env))
		}
		if err != nil {
			t.Fatal(err)
		}
		return w.Master
	}
	if at("a", "0") != at("a", "1") || at("a", "0") == at("b", "0") {
		t.Error(at("a", "0"), at("a", "1"), at("b", "0"))
	}
}
