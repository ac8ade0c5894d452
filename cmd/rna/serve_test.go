package main

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"image"
	"image/png"
	"io"
	"net/http"
	"os"
	"path/filepath"
	"reflect"
	"strings"
	"testing"
	"time"

	"onlinerna/train/evaluate"
)

// rna serve answers as rna predict, and ends without an error when it is told to stop.
func TestServe(t *testing.T) {
	photos, trained := photographs(t, 4, 40), filepath.Join(t.TempDir(), "run")
	runRNA(t, "train", "--data", photos, "--model", "conv6", "--image-size", "32", "--epochs", "1", "--rna", "off",
		"--batch", "8", "-q", "-o", trained)
	files, _ := filepath.Glob(filepath.Join(photos, "val", "*", "*"))
	var want []evaluate.Prediction
	_, text, _ := runRNA(t, append([]string{"predict", trained, "--device", "cpu", "--json"}, files...)...)
	if err := json.Unmarshal([]byte(text), &want); err != nil || len(want) < 4 {
		t.Fatal(err, text)
	}
	ctx, stop := context.WithCancel(t.Context())
	defer stop()
	r, w := io.Pipe()
	var log bytes.Buffer
	status := make(chan int, 1)
	go func() {
		s := run(ctx, []string{"serve", trained, "--listen", "127.0.0.1:0", "--device", "cpu", "--batch", "4"}, w, &log)
		w.Close()
		status <- s
	}()
	line := make([]byte, 200)
	n, err := r.Read(line)
	if err != nil {
		t.Fatal(err, log.String())
	}
	url := strings.TrimSpace(string(line[:n]))
	for i, file := range files {
		b, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		answer, err := http.Post(url, "image/jpeg", bytes.NewReader(b))
		if err != nil {
			t.Fatal(err)
		}
		var got []evaluate.Prediction
		err = json.NewDecoder(answer.Body).Decode(&got)
		answer.Body.Close()
		if err != nil || len(got) != 1 || got[0].Path != "-" || !reflect.DeepEqual(got[0].Guesses, want[i].Guesses) {
			t.Errorf("%s: %+v, %v, want %+v", file, got, err, want[i])
		}
	}
	http.DefaultClient.CloseIdleConnections()
	stop()
	if s := <-status; s != 0 || !strings.Contains(log.String(), "does not depend on other images") ||
		!strings.Contains(log.String(), "stopped") {
		t.Errorf("status %d, %s", s, log.String())
	}
	for want, args := range map[string][]string{
		"no-such-weights": {"no-such-weights"}, "--queue 3 holds less than a --batch of 4": {trained, "--queue", "3", "--batch", "4"},
		"--top 0": {trained, "--top", "0"}, "--batch-wait -1s": {trained, "--batch-wait", "-1s"}, "2 arguments": {trained, files[0]},
		"--listen nowhere": {trained, "--listen", "nowhere"}, "name the weights once": {trained, "--weights", trained},
	} {
		fails(t, append([]string{"serve"}, args...), want)
	}
}

// After large images a server gives their memory back to the system, and an image that takes gigabytes is refused.
func TestServeMemory(t *testing.T) {
	photos, trained := photographs(t, 4, 40), filepath.Join(t.TempDir(), "run")
	runRNA(t, "train", "--data", photos, "--model", "conv6", "--image-size", "32", "--epochs", "1", "--rna", "off",
		"--batch", "8", "-q", "-o", trained)
	cmd := itself("serve", trained, "--listen", "127.0.0.1:0", "--device", "cpu", "--workers", "2")
	cmd.Env = append(cmd.Env, "GODEBUG=madvdontneed=1") // else memory given back still counts as resident
	cmd.Stderr = os.Stderr
	out, err := cmd.StdoutPipe()
	if err == nil {
		err = cmd.Start()
	}
	if err != nil {
		t.Fatal(err)
	}
	defer cmd.Wait()
	defer cmd.Process.Kill()
	lines := bufio.NewScanner(out)
	if !lines.Scan() {
		t.Fatal("the server does not start")
	}
	url := lines.Text()
	memory := func() (mb int) { // resident
		status, err := os.ReadFile(fmt.Sprintf("/proc/%d/status", cmd.Process.Pid))
		if err != nil {
			t.Skip(err)
		}
		_, rest, _ := strings.Cut(string(status), "VmRSS:")
		if _, err := fmt.Sscan(rest, &mb); err != nil {
			t.Fatal(err)
		}
		return mb / 1000
	}
	send := func(side, want int) {
		t.Helper()
		var b bytes.Buffer
		if err := png.Encode(&b, image.NewNRGBA(image.Rect(0, 0, side, side))); err != nil {
			t.Fatal(err)
		}
		for range 5 {
			r, err := http.Post(url, "image/png", bytes.NewReader(b.Bytes()))
			if err != nil {
				t.Fatal(err)
			}
			if text, _ := io.ReadAll(r.Body); r.StatusCode != want {
				t.Errorf("%d² pixels: status %d: %s", side, r.StatusCode, text)
			}
			r.Body.Close()
		}
	}
	send(40, http.StatusOK)
	before := memory()
	send(6000, http.StatusOK) // 250 MB each
	most := memory()
	now := most
	for end := time.Now().Add(10 * time.Second); now > before+100 && time.Now().Before(end); now = memory() {
		send(40, http.StatusOK)
		time.Sleep(100 * time.Millisecond)
	}
	t.Logf("%d MB before large images, %d MB after them, then %d MB", before, most, now)
	if now > before+100 {
		t.Errorf("%d MB after large images, %d MB before", now, before)
	}
	send(8000, http.StatusRequestEntityTooLarge)
}
