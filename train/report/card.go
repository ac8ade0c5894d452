package report

import (
	"bytes"
	"cmp"
	"errors"
	"fmt"
	"io"
	"path/filepath"
	"strings"

	"go.yaml.in/yaml/v3"

	"onlinerna/data"
	"onlinerna/internal/text"
	"onlinerna/train"
	"onlinerna/train/network"
	"onlinerna/train/runs"
)

// cardData is the head of a model card, as huggingface_hub's ModelCardData reads it.
type cardData struct {
	Library  string      `yaml:"library_name"`
	Pipeline string      `yaml:"pipeline_tag,omitempty"`
	Tags     []string    `yaml:"tags"`
	Datasets []string    `yaml:"datasets,omitempty"`
	Metrics  []string    `yaml:"metrics,omitempty"`
	Index    []cardModel `yaml:"model-index,omitempty"`
}

type cardModel struct {
	Name    string       `yaml:"name"`
	Results []cardResult `yaml:"results"`
}

type cardResult struct {
	Task    cardNamed    `yaml:"task"`
	Dataset cardNamed    `yaml:"dataset"`
	Metrics []cardMetric `yaml:"metrics"`
}

type cardNamed struct {
	Type  string `yaml:"type"`
	Name  string `yaml:"name"`
	Split string `yaml:"split,omitempty"`
}

type cardMetric struct {
	Type  string  `yaml:"type"`
	Name  string  `yaml:"name"`
	Value float64 `yaml:"value"`
}

// hubSets are the names that sets of rna get have on Hugging Face's hub.
var hubSets = map[string]string{"cifar10": "uoft-cs/cifar10", "cifar100": "uoft-cs/cifar100", "mnist": "ylecun/mnist",
	"fashion-mnist": "zalando-datasets/fashion_mnist", "imagenet": "ILSVRC/imagenet-1k"}

// WriteCard writes a model card, the README.md of a model on Hugging Face's hub, about the weights of the best run of
// the first group.
func (p *Page) WriteCard(w io.Writer) error {
	if len(p.Groups) == 0 {
		return errors.New("nothing to describe: no runs")
	}
	g := &p.Groups[0]
	r := g.best()
	best := r.Best()
	if best == nil {
		return fmt.Errorf("%s: no weights were compared, so there are none to describe", r.Dir)
	}
	set := filepath.Base(r.Data())
	score, images := best.Score, judgeOf(r.History)
	if len(r.History[len(r.History)-1].Held) > 0 {
		images = onHeldOut
	}
	head := cardData{Library: "onlinerna", Pipeline: "image-classification", Tags: []string{"image-classification", "onlinerna",
		r.Config.Model}, Metrics: []string{"accuracy"}}
	kind := cardNamed{Type: cmp.Or(hubSets[r.Data()], set), Name: set, Split: strings.ReplaceAll(images, "-", "_")}
	if id := hubSets[r.Data()]; id != "" {
		head.Datasets = []string{id}
	}
	name := r.Config.Model + "-" + set
	kindOf := "image-classification"
	if score.Task == data.Regression {
		kindOf = "image-regression"
		head.Pipeline, head.Tags[0], head.Metrics = "", kindOf, []string{"rmse", "mae", "r2"}
	} else if score.Task == data.MultiLabel {
		head.Metrics = []string{"mean_average_precision"}
	}
	head.Index = []cardModel{{Name: name, Results: []cardResult{{Task: cardNamed{Type: kindOf,
		Name: strings.ToUpper(kindOf[:1]) + strings.ReplaceAll(kindOf[1:], "-", " ")}, Dataset: kind, Metrics: cardMetrics(score, len(r.Config.Classes))}}}}
	var b bytes.Buffer
	b.WriteString("---\n")
	y := yaml.NewEncoder(&b)
	y.SetIndent(2)
	if err := errors.Join(y.Encode(head), y.Close()); err != nil {
		return err
	}
	fmt.Fprintf(&b, "---\n\n# %s on %s\n\n", markdown(r.Config.Model), markdown(set))
	measure, unit, format := ErrorOf(score.Task)
	unit = strings.ReplaceAll(unit, "%", "%%") // in formats
	fmt.Fprintf(&b, "The weights are those of epoch %d, %s, the best by %s on %s images: %s "+format+unit+", with a standard "+
		"error of "+format+" over the %s images, loss %s.\n\n", best.Epoch, markdown(nameOf(r.Config, best.ScoreRecord)),
		bestBy(g.Runs), images, measure, score.Error(), standardError(score), text.Thousands(score.Images),
		lossText(score.Loss))
	if n := len(g.Runs); n > 1 && g.Best.N > 1 {
		fmt.Fprintf(&b, "They are the best of %d seeds, whose best weights have a mean of "+format+" ± "+format+unit+" (standard error).\n\n",
			g.Best.N, g.Best.Error, g.Best.ErrorSE)
	}
	if images == onHeldOut || len(r.History) > 1 {
		fmt.Fprintf(&b, "The %s images chose the epoch and the kind of the weights, so this is slightly too good; other images "+
			"tell better.\n\n", images)
	}
	b.WriteString("## Training\n\n")
	for _, f := range factsOf(g) {
		fmt.Fprintf(&b, "- %s\n", markdown(f[0]+": "+f[1]))
	}
	if e := p.Evaluations[r.Dir]; e != nil {
		e.card(&b)
	}
	b.WriteString("\n## Use\n\n    rna predict best.safetensors photos/ --top 3\n\nThe file records the model, the classes and " +
		"the normalisation. Names and layout of its tensors are torchvision's.\n\n## To repeat it\n\n")
	var s section
	sessions, err := train.ReadSessions(r.Dir)
	if err != nil {
		return err
	}
	s.repeat(r, &Group{Runs: []runs.Run{*r}}, sessions)
	for _, line := range s.Repeat {
		fmt.Fprintf(&b, "    %s\n", text.Printable(line))
	}
	if k := len(sessions); k > 0 {
		x := sessions[k-1]
		fmt.Fprintf(&b, "\nTrained with rna %s, %s on %s.\n", markdown(x.Version), x.Go, markdown(cmp.Or(x.Card, x.CPU, x.System)))
	}
	_, err = w.Write(b.Bytes())
	return err
}

// cardMetrics are the measures of a score.
func cardMetrics(s network.Score, classes int) []cardMetric {
	switch s.Task {
	case data.MultiLabel:
		return []cardMetric{{"mean_average_precision", "Mean average precision, %", s.MAP}, {"loss", "Binary cross-entropy",
			s.Loss}}
	case data.Regression:
		return []cardMetric{{"rmse", "Root mean square error", s.RMSE}, {"mae", "Mean absolute error", s.MAE}, {"r2", "R²", s.R2}}
	}
	list := []cardMetric{{"accuracy", "Top-1 accuracy, %", s.Top1}}
	if classes > 5 {
		list = append(list, cardMetric{"accuracy", "Top-5 accuracy, %", s.Top5})
	}
	return append(list, cardMetric{"loss", "Cross-entropy", s.Loss})
}

// card describes the classes.
func (e *Evaluation) card(b *bytes.Buffer) {
	if e.Targets != nil {
		e.Targets.card(b)
		return
	}
	fmt.Fprintf(b, "\n## Classes\n\nBalanced accuracy %v %%, macro F1 %v %%, calibration error %.4f; ± is a standard error.\n\n",
		e.Balanced, e.MacroF1, e.Calibration)
	if len(e.Classes) > 100 {
		fmt.Fprintf(b, "There are %d classes.\n", len(e.Classes))
		return
	}
	b.WriteString("| class | images | recall % | precision % |\n|-|-|-|-|\n")
	for _, c := range e.Classes {
		fmt.Fprintf(b, "| %s | %d | %v | %v |\n", markdown(c.Name), c.Images, c.Recall, c.Precision)
	}
}

// card describes the classes or columns of another task.
func (t *Targets) card(b *bytes.Buffer) {
	head, rows := "## Classes\n\nmAP "+fmt.Sprintf("%v %%, %s; ± is a standard error.", t.AP, t.found()), t.classRows()
	if t.Score.Task == data.Regression {
		head, rows = "## Numbers\n\n± is a standard error.", t.columnRows()
	}
	fmt.Fprintf(b, "\n%s\n\n", head)
	if len(rows) > 101 {
		fmt.Fprintf(b, "There are %d.\n", len(rows)-1)
		return
	}
	for i, row := range rows {
		for k := range row {
			row[k] = markdown(row[k])
		}
		fmt.Fprintf(b, "| %s |\n", strings.Join(row, " | "))
		if i == 0 {
			b.WriteString(strings.Repeat("|-", len(row)) + "|\n")
		}
	}
}

// markdown is a text in which no character means anything else.
func markdown(s string) string {
	var b strings.Builder
	for _, r := range text.Printable(s) {
		if strings.ContainsRune("\\`*_{}[]<>#|~!&", r) {
			b.WriteByte('\\')
		}
		b.WriteRune(r)
	}
	return b.String()
}
