package serve

import (
	"bytes"
	"context"
	"encoding/binary"
	"encoding/json"
	"errors"
	"fmt"
	"hash/crc32"
	"image"
	"image/color"
	"image/png"
	"io"
	"mime/multipart"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"reflect"
	"strings"
	"sync"
	"testing"
	"time"

	"onlinerna/data"
	"onlinerna/nn"
	"onlinerna/nn/device"
	"onlinerna/nn/device/cpu"
	"onlinerna/train/evaluate"
	"onlinerna/train/internal/traintest"
	"onlinerna/train/network"
	"onlinerna/train/ranks"
)

// predictor is one of a small net with random weights.
func predictor(t testing.TB, model string) *evaluate.Predictor {
	t.Helper()
	net, err := network.New(traintest.CPU(t, 1), model, nn.Config{Classes: 4}, 3)
	if err != nil {
		t.Fatal(err)
	}
	defer net.Close()
	path := filepath.Join(t.TempDir(), "weights.safetensors")
	meta := network.Meta{Model: model, Classes: []string{"ant", "bee", "cat", "dog"}, ImageSize: 32,
		Mean: []float64{.5, .5, .5}, Std: []float64{.25, .25, .25}}
	if err := net.SaveWeights(path, net.Params, net.Stats, meta); err != nil {
		t.Fatal(err)
	}
	o := &evaluate.Options{Weights: path, Open: func(*ranks.Group, int) (device.Device, error) {
		return cpu.New(cpu.Options{Threads: 1})
	}}
	p, err := o.OpenPredictor(io.Discard, nil)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := p.Close(); err != nil {
			t.Error(err)
		}
	})
	return p
}

// picture is a PNG of random-looking pixels.
func picture(t testing.TB, seed, width, height int) []byte {
	t.Helper()
	m := image.NewRGBA(image.Rect(0, 0, width, height))
	for y := range height {
		for x := range width {
			v := uint32((x/3+1)*(y/2+1)*(seed+1)) * 2654435761
			m.Set(x, y, color.RGBA{uint8(v >> 24), uint8(v >> 16), uint8(v >> 8), 255})
		}
	}
	var b bytes.Buffer
	if err := png.Encode(&b, m); err != nil {
		t.Fatal(err)
	}
	return b.Bytes()
}

// declared is a PNG whose header claims a size of side × side pixels.
func declared(b []byte, side int) []byte {
	b = bytes.Clone(b)
	binary.BigEndian.PutUint32(b[16:], uint32(side))
	binary.BigEndian.PutUint32(b[20:], uint32(side))
	binary.BigEndian.PutUint32(b[29:], crc32.ChecksumIEEE(b[12:29]))
	return b
}

// start serves on a free port, and returns the address and a function that stops the server.
func start(t testing.TB, s *Server) (address string, stop func() error) {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(context.Background())
	ended := make(chan error, 1)
	go func() { ended <- s.Serve(ctx, l) }()
	stop = sync.OnceValue(func() error { cancel(); return <-ended })
	t.Cleanup(func() {
		if err := stop(); err != nil {
			t.Error(err)
		}
	})
	return l.Addr().String(), stop
}

func create(t testing.TB, p *evaluate.Predictor, o Options) *Server {
	t.Helper()
	s, err := New(p, o)
	if err != nil {
		t.Fatal(err)
	}
	return s
}

// post sends a body and returns the status and the answer.
func post(t testing.TB, url, form string, body io.Reader) (int, string) {
	t.Helper()
	r, err := http.Post(url, form, body)
	if err != nil {
		t.Error(err)
		return 0, ""
	}
	defer r.Body.Close()
	b, err := io.ReadAll(r.Body)
	if err != nil {
		t.Error(err)
	}
	return r.StatusCode, string(b)
}

func form(t testing.TB, names []string, files [][]byte) (kind string, body *bytes.Buffer) {
	t.Helper()
	body = &bytes.Buffer{}
	w := multipart.NewWriter(body)
	for i, b := range files {
		part, err := w.CreateFormFile("image", names[i])
		if err == nil {
			_, err = part.Write(b)
		}
		if err != nil {
			t.Fatal(err)
		}
	}
	w.Close()
	return w.FormDataContentType(), body
}

// get reads a metric from the text of /metrics.
func metric(t testing.TB, address, name string) (value float64) {
	t.Helper()
	r, err := http.Get("http://" + address + "/metrics")
	if err != nil {
		t.Fatal(err)
	}
	defer r.Body.Close()
	b, _ := io.ReadAll(r.Body)
	for line := range strings.Lines(string(b)) {
		if rest, ok := strings.CutPrefix(line, name+" "); ok {
			if _, err := fmt.Sscan(rest, &value); err != nil {
				t.Fatal(err)
			}
			return value
		}
	}
	t.Fatalf("no metric %s in\n%s", name, b)
	return 0
}

// Answers are those of Predict in a whole batch, bit for bit: of one image alone, of several in one request, and of
// many clients at a time. resnet20 runs small batches by other algorithms.
func TestAnswers(t *testing.T) {
	for _, model := range []string{"resnet20", "conv6"} {
		p := predictor(t, model)
		var pictures [][]byte
		set := data.NewUnlabelled(3)
		var names []string
		for i := range 8 {
			pictures = append(pictures, picture(t, i, 20+3*i, 33))
			names = append(names, fmt.Sprintf("%d.png", i))
			set.AddEncoded(names[i], pictures[i])
		}
		want := make([]evaluate.Prediction, 8)
		for i := range want { // conv6's weights say nothing about the resizing: each image is prepared by itself
			list, bad, err := p.Predict(t.Context(), repeated(set, i), 2, data.LoaderOptions{Batch: 8}, io.Discard,
				func(int, evaluate.Prediction) {})
			if err != nil || bad > 0 {
				t.Fatal(err, bad)
			}
			want[i] = list[0]
		}
		s := create(t, p, Options{Batch: 8, Top: 2, Workers: 3})
		if !s.alone || s.sizes[len(s.sizes)-1] != 8 || !strings.Contains(s.Batches(), "does not depend") {
			t.Fatalf("%s: %v %v %s", model, s.sizes, s.alone, s.Batches())
		}
		address, _ := start(t, s)
		url := "http://" + address + "/predict"
		check := func(what string, status int, answer string, want []evaluate.Prediction) {
			t.Helper()
			var got []evaluate.Prediction
			if err := json.Unmarshal([]byte(answer), &got); err != nil || status != 200 || !reflect.DeepEqual(got, want) {
				t.Errorf("%s, %s: status %d, %v\n%s\nwant %+v", model, what, status, err, answer, want)
			}
		}
		single := func(what string, i int) {
			status, answer := post(t, url, "image/png", bytes.NewReader(pictures[i]))
			check(what, status, answer, []evaluate.Prediction{{Path: "-", Guesses: want[i].Guesses}})
		}
		single("alone", 3)
		kind, body := form(t, names, pictures)
		status, answer := post(t, url, kind, body)
		check("a form", status, answer, want)
		var group sync.WaitGroup
		for client := range 16 {
			group.Go(func() {
				for k := range 6 {
					single("among others", (client+k)%8)
				}
			})
		}
		group.Wait()
		status, answer = post(t, "http://"+address+"/?top=1", "", bytes.NewReader(pictures[0]))
		check("top", status, answer, []evaluate.Prediction{{Path: "-", Guesses: want[0].Guesses[:1]}})
		if n, batches := metric(t, address, "rna_batch_images_sum"), metric(t, address, "rna_batch_images_count"); n != 106 ||
			batches < 15 || batches > 100 {
			t.Errorf("%s: %g images in %g batches", model, n, batches)
		}
	}
}

// repeated is a set of eight times an image.
func repeated(set *data.Unlabelled, i int) data.Dataset {
	all, err := data.Subset(set, []int{i, i, i, i, i, i, i, i})
	if err != nil {
		panic(err)
	}
	return all
}

// A size of batch whose answers differ from those of the largest is not used.
func TestSizes(t *testing.T) {
	s := create(t, predictor(t, "resnet20"), Options{Batch: 16})
	r := s.batch(16)
	for i := range r.Images {
		r.Images[i] = uint8(i * i >> 3)
	}
	logits := func(b *data.Batch) []float32 {
		x := make([]float32, 4*b.N)
		if _, err := s.p.Net.Evaluate(b, x); err != nil {
			t.Fatal(err)
		}
		return x
	}
	all := logits(r)
	for k := 1; k <= 16; k *= 2 {
		same := reflect.DeepEqual(logits(first(r, k)), all[:4*k])
		used := false
		for _, size := range s.sizes {
			used = used || size == k
		}
		if same != used {
			t.Errorf("batches of %d: equal %v, used %v", k, same, used)
		}
	}
}

func TestRefusals(t *testing.T) {
	s := create(t, predictor(t, "conv6"), Options{Batch: 2, Queue: 4, MaxBytes: 20_000, Timeout: 700 * time.Millisecond})
	address, _ := start(t, s)
	url, good := "http://"+address+"/predict", picture(t, 1, 9, 9)
	manyKind, many := form(t, make([]string, 5), [][]byte{good, good, good, good, good})
	many = bytes.NewBuffer(bytes.ReplaceAll(many.Bytes(), []byte(`filename=""`), []byte(`filename="a"`)))
	plainKind, plain := form(t, []string{""}, [][]byte{good})
	for _, c := range []struct {
		what, path, kind string
		body             io.Reader
		status           int
		want             string
	}{
		{"good", "", "", bytes.NewReader(good), 200, "classes"},
		{"empty", "", "", nil, 400, "the body is empty"},
		{"no image", "", "image/png", strings.NewReader("hello"), 400, "-: "},
		{"half an image", "", "", bytes.NewReader(good[:len(good)/2]), 400, "-: "},
		{"top", "?top=0", "", bytes.NewReader(good), 400, "query top=0"},
		{"query", "?best=1", "", bytes.NewReader(good), 400, "query best=1"},
		{"long", "", "", bytes.NewReader(make([]byte, 20_001)), 413, "longer than"},
		{"long, in chunks", "", "", io.MultiReader(bytes.NewReader(make([]byte, 20_001))), 413, "longer than"},
		{"many", "", manyKind, many, 413, "may have 4 images"},
		{"no file", "", plainKind, plain, 400, "is not a file"},
		{"no boundary", "", "multipart/form-data", bytes.NewReader(good), 400, "boundary"},
		{"an empty form", "", "multipart/form-data; boundary=x", strings.NewReader("--x--\r\n"), 400, "no file"},
		{"another path", "/x", "", bytes.NewReader(good), 404, "POST an image to /predict"},
		{"as many pixels as no image may have", "", "", bytes.NewReader(declared(good, 20_000)), 413, "20000x20000"},
		{"more memory than decoding may take", "", "", bytes.NewReader(declared(good, 12_000)), 413, "decoding it takes"},
	} {
		if status, answer := post(t, url+c.path, c.kind, c.body); status != c.status || !strings.Contains(answer, c.want) {
			t.Errorf("%s: %d %s, want %d %s", c.what, status, answer, c.status, c.want)
		}
	}
	for _, c := range []struct {
		request, allow string
		status         int
	}{{"GET ", "POST", 405}, {"GET /", "POST", 405}, {"GET /predict", "POST", 405}, {"PUT /predict", "POST", 405},
		{"DELETE /predict", "POST", 405}, {"POST /healthz", "GET", 405}, {"DELETE /metrics", "GET", 405},
		{"GET /x", "", 404}, {"GET /predict/x", "", 404}} {
		method, path, _ := strings.Cut(c.request, " ")
		request, err := http.NewRequest(method, "http://"+address+path, nil)
		if err != nil {
			t.Fatal(err)
		}
		r, err := http.DefaultClient.Do(request)
		if err != nil {
			t.Fatal(err)
		}
		var answer map[string]string
		err = json.NewDecoder(r.Body).Decode(&answer)
		r.Body.Close()
		if r.StatusCode != c.status || r.Header.Get("Allow") != c.allow || !strings.Contains(answer["error"],
			"POST an image") || r.Header.Get("Content-Type") != "application/json" || err != nil {
			t.Errorf("%s: %+v %v %v", c.request, r, answer, err)
		}
	}
	if r, err := http.Head("http://" + address + "/healthz"); err != nil || r.StatusCode != 200 {
		t.Errorf("%+v %v", r, err)
	}
	// A body that does not come.
	c, err := net.Dial("tcp", address)
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	fmt.Fprintf(c, "POST /predict HTTP/1.1\r\nHost: x\r\nContent-Length: 100\r\n\r\nabc")
	c.SetReadDeadline(time.Now().Add(10 * time.Second))
	answer, err := io.ReadAll(c)
	if err != nil || !strings.HasPrefix(string(answer), "HTTP/1.1 408") || !strings.Contains(string(answer), "Connection: close") {
		t.Errorf("%q, %v", answer, err)
	}
	// An answer that does not come: images wait for another that is being decoded.
	s = create(t, predictor(t, "conv6"), Options{Batch: 2, Wait: time.Hour, Timeout: 300 * time.Millisecond})
	address, _ = start(t, s)
	s.coming.Add(1)
	if status, answer := post(t, "http://"+address, "", bytes.NewReader(good)); status != 503 ||
		!strings.Contains(answer, "takes longer") {
		t.Errorf("%d %s", status, answer)
	}
}

// A full queue refuses requests; it takes them again once there is room.
func TestBusy(t *testing.T) {
	s := create(t, predictor(t, "conv6"), Options{Batch: 4, Queue: 4, Wait: time.Hour, Timeout: time.Minute})
	address, stop := start(t, s)
	url, good := "http://"+address+"/predict", picture(t, 1, 9, 9)
	s.coming.Add(1) // as if an image was being decoded: batches wait until they are full
	var group sync.WaitGroup
	status := make([]int, 4)
	send := func(i int) { group.Go(func() { status[i], _ = post(t, url, "", bytes.NewReader(good)) }) }
	for i := range 3 {
		send(i)
	}
	until(t, func() bool { return metric(t, address, "rna_images_in_progress") == 3 })
	kind, body := form(t, []string{"a", "b"}, [][]byte{good, good})
	if status, answer := post(t, url, kind, body); status != 429 || !strings.Contains(answer, "try again") {
		t.Errorf("%d %s", status, answer)
	}
	// Bodies that take all memory.
	until(t, func() bool { return s.bodies.TryAcquire(leastBodies) }) // images that wait hold none
	if status, answer := post(t, url, "", bytes.NewReader(good)); status != 429 || !strings.Contains(answer, "memory") {
		t.Errorf("%d %s", status, answer)
	}
	s.bodies.Release(leastBodies)
	// A stop waits for the requests under way, and takes no more.
	ended := make(chan error, 1)
	go func() { ended <- stop() }()
	until(t, s.stopping.Load)
	if r, err := http.Get("http://" + address + "/healthz"); err == nil && r.StatusCode != 503 {
		t.Errorf("%+v", r)
	}
	s.queue <- &job{ctx: t.Context(), image: s.batch(1), at: time.Now(), done: make(chan result, 1)}
	group.Wait()
	if err := <-ended; err != nil || !reflect.DeepEqual(status[:3], []int{200, 200, 200}) {
		t.Errorf("%v %v", status, err)
	}
	if _, err := net.Dial("tcp", address); err == nil {
		t.Error("the port is still open")
	}
}

func until(t testing.TB, ok func() bool) {
	t.Helper()
	for end := time.Now().Add(20 * time.Second); !ok(); time.Sleep(time.Millisecond) {
		if time.Now().After(end) {
			t.Fatal("it never is")
		}
	}
}

// An error of the net answers all requests, and ends the server.
func TestBrokenNet(t *testing.T) {
	p := predictor(t, "conv6")
	s := create(t, p, Options{Batch: 1})
	p.Channels = 1
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	ended := make(chan error, 1)
	go func() { ended <- s.Serve(t.Context(), l) }()
	status, answer := post(t, "http://"+l.Addr().String(), "", bytes.NewReader(picture(t, 1, 40, 40)))
	if err := <-ended; err == nil || status != 500 || !strings.Contains(answer, "error") {
		t.Errorf("%d %s %v", status, answer, err)
	}
}

// Images may wait for a client that is gone: they are not computed.
func TestGone(t *testing.T) {
	s := create(t, predictor(t, "conv6"), Options{Batch: 2, Wait: time.Hour})
	address, _ := start(t, s)
	s.coming.Add(1)
	ctx, cancel := context.WithCancel(t.Context())
	request, err := http.NewRequestWithContext(ctx, "POST", "http://"+address, bytes.NewReader(picture(t, 1, 9, 9)))
	if err != nil {
		t.Fatal(err)
	}
	go func() {
		until(t, func() bool { return metric(t, address, "rna_images_in_progress") == 1 })
		cancel()
	}()
	if _, err := http.DefaultClient.Do(request); !errors.Is(err, context.Canceled) {
		t.Error(err)
	}
	until(t, func() bool { return metric(t, address, "rna_images_in_progress") == 0 })
	if status, _ := post(t, "http://"+address, "", bytes.NewReader(picture(t, 1, 9, 9))); status != 503 && status != 200 {
		t.Error(status)
	}
	if n := metric(t, address, `rna_requests_total{code="499"}`); n != 1 {
		t.Errorf("%g", n)
	}
}

// TestMetrics wants each metric to have its head, and histograms that rise. It leaves the text for make check-serve.
func TestMetrics(t *testing.T) {
	s := create(t, predictor(t, "conv6"), Options{Batch: 4})
	for _, seconds := range []float64{.0005, .3, 99} {
		s.metrics.request(200, time.Duration(seconds*1e9))
		s.metrics.batch(3, time.Millisecond)
	}
	s.metrics.request(413, 0)
	var b bytes.Buffer
	s.metrics.write(&b)
	if path := os.Getenv("ONLINERNA_METRICS"); path != "" {
		if err := os.WriteFile(path, b.Bytes(), 0o666); err != nil {
			t.Fatal(err)
		}
	}
	text := b.String()
	for _, want := range []string{"rna_requests_total{code=\"413\"} 1\n", "_duration_seconds_bucket{le=\"0.001\"} 2\n",
		"request_duration_seconds_bucket{le=\"30\"} 3\n", "request_duration_seconds_bucket{le=\"+Inf\"} 4\n",
		"request_duration_seconds_sum 99.3005\n", "request_duration_seconds_count 4\n", "rna_batch_images_sum 9\n",
		"rna_batch_images_bucket{le=\"2\"} 0\nrna_batch_images_bucket{le=\"4\"} 3\n", "rna_model_info{model=\"conv6\"} 1\n"} {
		if !strings.Contains(text, want) {
			t.Errorf("no %s in\n%s", want, text)
		}
	}
	headed := map[string]bool{}
	for line := range strings.Lines(text) {
		if rest, ok := strings.CutPrefix(line, "# TYPE "); ok {
			name, _, _ := strings.Cut(rest, " ")
			headed[name] = true
			continue
		}
		name := strings.TrimRight(strings.FieldsFunc(line, func(r rune) bool { return r == '{' || r == ' ' })[0], "\n")
		if name == "#" {
			continue
		}
		for _, suffix := range []string{"_bucket", "_sum", "_count"} {
			name = strings.TrimSuffix(name, suffix)
		}
		if !headed[name] {
			t.Errorf("%s has no head before it", name)
		}
	}
}
