package avx

import (
	"flag"
	"log"
	"os"
	"path/filepath"

	"github.com/mmcloughlin/avo/build"
)

// Enter changes to the folder of a package, given from the repository's root. Generators start in their module's
// folder.
func Enter(folder string) {
	log.SetFlags(0)
	if err := os.Chdir(filepath.Join("..", "..", "..", filepath.FromSlash(folder))); err != nil {
		log.Fatal(err)
	}
}

// Write writes the kernels to kernels_amd64.s, and their declarations to the file stubs unless it is empty.
func Write(stubs string) {
	args := []string{"-out", "kernels_amd64.s"}
	if stubs != "" {
		args = append(args, "-stubs", stubs)
	}
	if err := flag.CommandLine.Parse(args); err != nil {
		log.Fatal(err)
	}
	os.Args = os.Args[:1] // avo writes them into its files
	build.Generate()
}
