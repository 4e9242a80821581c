package meilitest

import (
	"bufio"
	"bytes"
	"compress/gzip"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"io"
	"io/fs"
	"os"
	"path/filepath"
)

// recordingHeader is the first line of a recording.
type recordingHeader struct {
	Version string `json:"meilisearch"`
}

// exchange is a request and its answer. A long request is known by its digest alone.
type exchange struct {
	Method string          `json:"method"`
	Path   string          `json:"path"`
	Body   json.RawMessage `json:"body,omitempty"`
	Digest string          `json:"digest,omitempty"`
	Status int             `json:"status"`
	Answer json.RawMessage `json:"answer,omitempty"`
	Times  int             `json:"times,omitempty"` // how often, where more than once
}

// key is what a request is known by.
func (e exchange) key() string { return e.Method + " " + e.Path + " " + string(e.Body) + e.Digest }

type recording struct {
	header    recordingHeader
	exchanges []exchange
}

const (
	maxInlineBody     = 1 << 10  // of a request that is written out
	maxPlainRecording = 64 << 10 // of a recording that is not compressed
)

// write writes a recording in the place of the one before.
func (t recording) write(path string) error {
	var b bytes.Buffer
	lines := json.NewEncoder(&b)
	lines.SetEscapeHTML(false)
	err := lines.Encode(t.header)
	for _, e := range t.exchanges {
		err = errors.Join(err, lines.Encode(e))
	}
	if err != nil {
		return err
	}
	for _, old := range []string{path, path + ".gz"} {
		if err := os.Remove(old); err != nil && !errors.Is(err, fs.ErrNotExist) {
			return err
		}
	}
	if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
		return err
	}
	if b.Len() < maxPlainRecording {
		return os.WriteFile(path, b.Bytes(), 0o644)
	}
	var packed bytes.Buffer
	z, _ := gzip.NewWriterLevel(&packed, gzip.BestCompression)
	_, err = z.Write(b.Bytes())
	if err = errors.Join(err, z.Close()); err != nil {
		return err
	}
	return os.WriteFile(path+".gz", packed.Bytes(), 0o644)
}

// readRecording reads a recording, compressed or not.
func readRecording(path string) (t recording, err error) {
	var in io.Reader
	b, err := os.ReadFile(path)
	if in = bytes.NewReader(b); errors.Is(err, fs.ErrNotExist) {
		if b, err = os.ReadFile(path + ".gz"); err == nil {
			in, err = gzip.NewReader(bytes.NewReader(b))
		}
	}
	if err != nil {
		return t, err
	}
	lines := json.NewDecoder(bufio.NewReader(in))
	if err := lines.Decode(&t.header); err != nil {
		return t, err
	}
	for {
		var e exchange
		if err := lines.Decode(&e); errors.Is(err, io.EOF) {
			return t, nil
		} else if err != nil {
			return t, err
		}
		t.exchanges = append(t.exchanges, e)
	}
}

// canonicalJSON is a JSON text with its members in order, and without what differs each time.
func canonicalJSON(text []byte) json.RawMessage {
	d := json.NewDecoder(bytes.NewReader(text))
	d.UseNumber()
	var v any
	if d.Decode(&v) != nil {
		return nil
	}
	var b bytes.Buffer
	e := json.NewEncoder(&b)
	e.SetEscapeHTML(false)
	if e.Encode(dropTimings(v)) != nil {
		return nil
	}
	return bytes.TrimSpace(b.Bytes())
}

// dropTimings leaves out how long things took.
func dropTimings(v any) any {
	switch v := v.(type) {
	case map[string]any:
		delete(v, "processingTimeMs")
		for _, inner := range v {
			dropTimings(inner)
		}
	case []any:
		for _, inner := range v {
			dropTimings(inner)
		}
	}
	return v
}

func shortHash(b []byte) string {
	sum := sha256.Sum256(b)
	return hex.EncodeToString(sum[:16])
}
