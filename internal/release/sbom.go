package main

import (
	"crypto/sha256"
	"debug/buildinfo"
	"encoding/json"
	"fmt"
	"runtime/debug"
	"strings"
	"time"
)

// The parts of CycloneDX 1.5 that a Go program needs.
type (
	bom struct {
		Format       string       `json:"bomFormat"`
		Spec         string       `json:"specVersion"`
		Serial       string       `json:"serialNumber"`
		Version      int          `json:"version"`
		Metadata     metadata     `json:"metadata"`
		Components   []component  `json:"components"`
		Dependencies []dependency `json:"dependencies"`
	}
	metadata struct {
		Timestamp  string     `json:"timestamp"`
		Component  component  `json:"component"`
		Properties []property `json:"properties"`
	}
	component struct {
		Ref        string     `json:"bom-ref"`
		Type       string     `json:"type"`
		Name       string     `json:"name"`
		Version    string     `json:"version"`
		Purl       string     `json:"purl,omitempty"`
		Hashes     []hash     `json:"hashes,omitempty"`
		Licenses   []license  `json:"licenses,omitempty"`
		Properties []property `json:"properties,omitempty"`
	}
	hash struct {
		Alg     string `json:"alg"`
		Content string `json:"content"`
	}
	license struct {
		Expression string `json:"expression"`
	}
	property struct {
		Name  string `json:"name"`
		Value string `json:"value"`
	}
	dependency struct {
		Ref string   `json:"ref"`
		On  []string `json:"dependsOn,omitempty"`
	}
)

// sbom lists the modules of a binary by its build information, as CycloneDX.
func (r *release) sbom(info *buildinfo.BuildInfo, sum [sha256.Size]byte) ([]byte, error) {
	main := component{Ref: "rna", Type: "application", Name: "rna", Version: r.version,
		Hashes: []hash{{"SHA-256", fmt.Sprintf("%x", sum)}}, Licenses: []license{{"Apache-2.0"}}}
	id := sum // a UUID of version 8
	id[6], id[8] = id[6]&0x0f|0x80, id[8]&0x3f|0x80
	b := bom{Format: "CycloneDX", Spec: "1.5", Version: 1,
		Serial:   fmt.Sprintf("urn:uuid:%x-%x-%x-%x-%x", id[:4], id[4:6], id[6:8], id[8:10], id[10:16]),
		Metadata: metadata{Timestamp: r.when.Format(time.RFC3339), Component: main}}
	b.Metadata.Properties = append(b.Metadata.Properties, property{"commit", r.commit})
	for _, s := range info.Settings {
		b.Metadata.Properties = append(b.Metadata.Properties, property{"go:build:" + s.Key, s.Value})
	}
	std := strings.TrimPrefix(info.GoVersion, "go")
	all := []component{{Ref: "std", Type: "library", Name: "std", Version: std, Purl: "pkg:golang/std@" + std}}
	for _, m := range info.Deps {
		all = append(all, module(m))
	}
	b.Components = all
	root := dependency{Ref: main.Ref}
	for _, c := range all {
		root.On = append(root.On, c.Ref)
	}
	b.Dependencies = []dependency{root}
	out, err := json.MarshalIndent(b, "", "  ")
	return append(out, '\n'), err
}

func module(m *debug.Module) component {
	if m.Replace != nil {
		m = m.Replace
	}
	c := component{Type: "library", Name: m.Path, Version: m.Version}
	c.Purl = "pkg:golang/" + m.Path + "@" + strings.ReplaceAll(m.Version, "+", "%2B")
	c.Ref = c.Purl
	if m.Sum != "" {
		c.Properties = []property{{"go:sum", m.Sum}}
	}
	return c
}
