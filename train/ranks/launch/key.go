package launch

import (
	"fmt"
	"io"
	"os"
	"strings"

	"onlinerna/internal/files"
	"onlinerna/train/ranks"
)

// ranksKey is the ranks' shared secret: from the variable, else from the file, else none.
func ranksKey() (string, error) {
	if key := os.Getenv(ranks.KeyVar); key != "" {
		return key, nil
	}
	path := os.Getenv(ranks.KeyFileVar)
	if path == "" {
		return "", nil
	}
	f, err := files.Open(path)
	if err != nil {
		return "", fmt.Errorf("%s: %w", ranks.KeyFileVar, err)
	}
	defer f.Close()
	const most = 4096
	b, err := io.ReadAll(io.LimitReader(f, most+1))
	key := strings.TrimSpace(string(b))
	switch {
	case err != nil:
		return "", fmt.Errorf("%s: %w", ranks.KeyFileVar, err)
	case key == "" || len(b) > most:
		return "", fmt.Errorf("%s: %s: want a key of 1 to %d bytes, as of head -c 32 /dev/urandom | base64",
			ranks.KeyFileVar, path, most)
	}
	return key, nil
}
