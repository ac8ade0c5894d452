package serve

import (
	"bufio"
	"bytes"
	"fmt"
	"io"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"
)

// TestSpeed compares the images per second of rna serve, at 64 clients on this machine, with those of rna predict on
// the same files: ONLINERNA_SERVE has the program, weights of a net for photos, and a folder of JPEGs. The times of
// rna predict are differences between all files, several times, and one: its start does not count.
func TestSpeed(t *testing.T) {
	args := strings.Fields(os.Getenv("ONLINERNA_SERVE"))
	if len(args) < 3 {
		t.Skip("ONLINERNA_SERVE is not set: make bench-serve")
	}
	program, weights, folder := args[0], append([]string{"--weights", args[1]}, args[3:]...), args[2]
	files, _ := filepath.Glob(filepath.Join(folder, "*.[jJ][pP]*[gG]"))
	more, _ := filepath.Glob(filepath.Join(folder, "*", "*.[jJ][pP]*[gG]"))
	if files = append(files, more...); len(files) == 0 {
		t.Fatalf("%s: no JPEGs", folder)
	}
	images := 512
	if text := os.Getenv("ONLINERNA_SERVE_IMAGES"); text != "" {
		images, _ = strconv.Atoi(text)
	}
	var list []string
	var bodies [][]byte
	for i := range images {
		b, err := os.ReadFile(files[i%len(files)])
		if err != nil {
			t.Fatal(err)
		}
		list, bodies = append(list, files[i%len(files)]), append(bodies, b)
	}
	predict := func(n int) time.Duration {
		from := time.Now()
		if b, err := exec.Command(program, append(append([]string{"predict", "--json"}, weights...),
			list[:n]...)...).CombinedOutput(); err != nil {
			t.Fatalf("%v: %s", err, b)
		}
		return time.Since(from)
	}
	server := exec.Command(program, append([]string{"serve", "--listen", "127.0.0.1:0"}, weights...)...)
	server.Stderr = os.Stderr
	out, err := server.StdoutPipe()
	if err == nil {
		err = server.Start()
	}
	if err != nil {
		t.Fatal(err)
	}
	defer server.Wait()
	defer server.Process.Kill()
	lines := bufio.NewScanner(out)
	if !lines.Scan() {
		t.Fatal("the server does not start")
	}
	url := lines.Text()
	client := &http.Client{Transport: &http.Transport{MaxIdleConnsPerHost: 64}}
	serve := func() time.Duration {
		work := make(chan []byte)
		var group sync.WaitGroup
		for range 64 {
			group.Go(func() {
				for b := range work {
					r, err := client.Post(url, "image/jpeg", bytes.NewReader(b))
					if err != nil {
						t.Error(err)
						continue
					}
					if b, _ := io.ReadAll(r.Body); r.StatusCode != 200 {
						t.Errorf("status %d: %s", r.StatusCode, b)
					}
					r.Body.Close()
				}
			})
		}
		from := time.Now()
		for _, b := range bodies {
			work <- b
		}
		close(work)
		group.Wait()
		return time.Since(from)
	}
	for range 3 { // in turn, because other load comes and goes
		p := predict(images) - predict(1)
		s := serve()
		fmt.Printf("rna predict %.1f images/s, rna serve %.1f: ratio %.3f\n", float64(images-1)/p.Seconds(),
			float64(images)/s.Seconds(), p.Seconds()/s.Seconds())
	}
}
