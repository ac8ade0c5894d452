package format

import (
	"encoding/csv"
	"errors"
	"fmt"
	"io"
	"path/filepath"
	"strings"

	"onlinerna/internal/files"
)

// kaggleLayout is that of Kaggle's ImageNet: ILSVRC/Data/CLS-LOC with train/<wnid>/ and a flat val/ beside
// LOC_val_solution.csv. The place may be any of these folders.
var kaggleLayout = layout{
	want: "Kaggle's ILSVRC/Data/CLS-LOC",
	find: func(dir *listing) (Splits, error) {
		top := dir.folder(filepath.Join("ILSVRC", "Data", "CLS-LOC"), filepath.Join("Data", "CLS-LOC"), "CLS-LOC")
		if top == "" {
			return Splits{}, nil
		}
		return folderLayout.find(&listing{path: top})
	},
}

// KaggleSolution is the name of the file with the labels of the flat val/.
const KaggleSolution = "LOC_val_solution.csv"

// readSolution reads the wnid of each image, by its name without extension.
func readSolution(path string) (map[string]string, error) {
	f, err := files.Open(path)
	if err != nil {
		return nil, fmt.Errorf("data: %w", err)
	}
	defer f.Close()
	r := csv.NewReader(f)
	r.ReuseRecord = true
	labels := map[string]string{}
	for line := 1; ; line++ {
		row, err := r.Read()
		if errors.Is(err, io.EOF) {
			break
		}
		if err != nil {
			return nil, fmt.Errorf("%s: %w", path, err)
		}
		if line == 1 {
			if len(row) != 2 || strings.TrimPrefix(row[0], "\ufeff") != "ImageId" || row[1] != "PredictionString" {
				return nil, fmt.Errorf("%s: the first line is %q, want ImageId,PredictionString", path,
					strings.Join(row, ","))
			}
			continue
		}
		// The wnid and the box of each object: all objects are of one class.
		words := strings.Fields(row[1])
		if len(words) == 0 {
			return nil, fmt.Errorf("%s: line %d: image %s has no class", path, line, row[0])
		}
		if _, ok := labels[row[0]]; ok {
			return nil, fmt.Errorf("%s: line %d: image %s occurs twice", path, line, row[0])
		}
		labels[strings.Clone(row[0])] = strings.Clone(words[0])
	}
	return labels, nil
}
