package format

// Task is the kind of a set's labels, and so of the outputs of a net that learns them.
type Task string

// The tasks.
const (
	Classification Task = "classification" // each image shows one class
	MultiLabel     Task = "multi-label"    // each image shows any number of classes
	Regression     Task = "regression"     // each image has a number for each of Classes, which are names of columns
)

// Targeted is a set of a task other than classification. Label is −1.
type Targeted interface {
	Set
	Task() Task
	// Targets sets row to the targets of image i, one for each of Classes: its numbers, or 1 for the classes that it
	// shows and 0 for others.
	Targets(i int, row []float64)
}

// targets are the targets of a set's images.
type targets struct {
	task    Task
	width   int       // of a row
	numbers []float64 // of regression, by image
	shown   []int32   // of multi-label images: their classes
	ends    []int     // by image, in shown
}

func (t *targets) Task() Task { return t.task }

func (t *targets) Targets(i int, row []float64) {
	if t.task == Regression {
		copy(row, t.numbers[i*t.width:(i+1)*t.width])
		return
	}
	clear(row)
	start := 0
	if i > 0 {
		start = t.ends[i-1]
	}
	for _, class := range t.shown[start:t.ends[i]] {
		row[class] = 1
	}
}

// targetedFolder is a folder whose images have targets.
type targetedFolder struct {
	*folder
	targets
}

// Label is −1: an image has no class of its own.
func (d *targetedFolder) Label(int) int { return -1 }

// targetedParquet is a parquet set with lists of labels.
type targetedParquet struct {
	*parquet
	targets
}

// Label is −1: an image has no class of its own.
func (d *targetedParquet) Label(int) int { return -1 }

var (
	_ Targeted = (*targetedFolder)(nil)
	_ Targeted = (*targetedParquet)(nil)
	_ Encoded  = (*targetedFolder)(nil)
	_ Encoded  = (*targetedParquet)(nil)
)
