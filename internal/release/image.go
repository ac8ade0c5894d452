package main

import (
	"bytes"
	"crypto/sha256"
	"encoding/json"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"time"
)

// The parts of OCI's image format, version 1.1, that an image of one layer needs.
const (
	indexType    = "application/vnd.oci.image.index.v1+json"
	manifestType = "application/vnd.oci.image.manifest.v1+json"
	configType   = "application/vnd.oci.image.config.v1+json"
	layerType    = "application/vnd.oci.image.layer.v1.tar+gzip"
)

type (
	descriptor struct {
		MediaType   string            `json:"mediaType"`
		Digest      string            `json:"digest"`
		Size        int               `json:"size"`
		Platform    *platform         `json:"platform,omitempty"`
		Annotations map[string]string `json:"annotations,omitempty"`
	}
	platform struct {
		Architecture string `json:"architecture"`
		OS           string `json:"os"`
	}
	manifest struct {
		SchemaVersion int          `json:"schemaVersion"`
		MediaType     string       `json:"mediaType"`
		Config        *descriptor  `json:"config,omitempty"`
		Layers        []descriptor `json:"layers,omitempty"`
		Manifests     []descriptor `json:"manifests,omitempty"`
	}
	imageConfig struct {
		platform
		Created string         `json:"created"`
		Config  map[string]any `json:"config"`
		RootFS  map[string]any `json:"rootfs"`
	}
)

// layout is an OCI layout: a tar with blobs by their digests.
type layout []entry

// add adds a blob, and returns its descriptor.
func (l *layout) add(mediaType string, content []byte) descriptor {
	sum := fmt.Sprintf("%x", sha256.Sum256(content))
	*l = append(*l, entry{"blobs/sha256/" + sum, content, 0o644})
	return descriptor{MediaType: mediaType, Digest: "sha256:" + sum, Size: len(content)}
}

func (l *layout) addJSON(mediaType string, v any) (descriptor, error) {
	b, err := json.Marshal(v)
	return l.add(mediaType, b), err
}

// image writes rna-VERSION-oci.tar: an image from scratch with rna alone, for each processor, and an index of them.
func (r *release) image(programs []*program) error {
	var l layout
	index := manifest{SchemaVersion: 2, MediaType: indexType}
	for _, p := range programs {
		var raw, packed bytes.Buffer
		files := []entry{
			{"etc/passwd", []byte("root:x:0:0::/:\nrna:x:10001:10001::/work:\n"), 0o644},
			{"tmp/", nil, 0o777 | fs.ModeSticky},
			{"usr/local/bin/rna", p.binary, 0o755},
			{"usr/share/rna/LICENSE", r.common[0].content, 0o644},
			{"usr/share/rna/sbom.cdx.json", p.sbom, 0o644},
			{"work/", nil, 0o777 | fs.ModeSticky},
		}
		if err := writeTar(&raw, files, r.when); err != nil {
			return err
		}
		if err := packTar(&packed, files, r.when); err != nil {
			return err
		}
		layer := l.add(layerType, packed.Bytes())
		config, err := l.addJSON(configType, imageConfig{
			platform: platform{p.processor, p.system}, Created: r.when.Format(time.RFC3339),
			Config: map[string]any{
				"User": "10001", "WorkingDir": "/work", "Entrypoint": []string{"/usr/local/bin/rna"}, "Cmd": []string{"help"},
				"Env": []string{"PATH=/usr/local/bin", "HOME=/work"},
				"Labels": map[string]string{"org.opencontainers.image.version": r.version,
					"org.opencontainers.image.revision": r.commit, "org.opencontainers.image.licenses": "Apache-2.0"},
			},
			RootFS: map[string]any{"type": "layers",
				"diff_ids": []string{fmt.Sprintf("sha256:%x", sha256.Sum256(raw.Bytes()))}},
		})
		if err != nil {
			return err
		}
		m, err := l.addJSON(manifestType, manifest{SchemaVersion: 2, MediaType: manifestType, Config: &config,
			Layers: []descriptor{layer}})
		if err != nil {
			return err
		}
		m.Platform = &platform{p.processor, p.system}
		index.Manifests = append(index.Manifests, m)
	}
	all, err := l.addJSON(indexType, index)
	if err != nil {
		return err
	}
	all.Annotations = map[string]string{"org.opencontainers.image.ref.name": r.version}
	top, err := json.Marshal(manifest{SchemaVersion: 2, MediaType: indexType, Manifests: []descriptor{all}})
	if err != nil {
		return err
	}
	l = append(l, entry{"index.json", top, 0o644}, entry{"oci-layout", []byte(`{"imageLayoutVersion":"1.0.0"}`), 0o644})
	var b bytes.Buffer
	if err := writeTar(&b, l, r.when); err != nil {
		return err
	}
	return os.WriteFile(filepath.Join(r.out, "rna-"+r.version+"-oci.tar"), b.Bytes(), 0o666)
}
