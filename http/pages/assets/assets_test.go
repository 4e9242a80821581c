package assets_test

import (
	"compress/gzip"
	"io"
	"net/http/httptest"
	"strings"
	"testing"

	"lieudit/http/pages/assets"
)

// The budget of a page in bytes, compressed: a reader on a train waits for all of it.
const maxCompressed = 12 << 10

func TestStyleAndScriptsFitTheirBudget(t *testing.T) {
	t.Parallel()
	set := assets.Load()
	for _, name := range []string{"app.css", "app.js"} {
		w := httptest.NewRecorder()
		r := httptest.NewRequest("GET", pathOf(t, set, name), nil)
		r.Header.Set("Accept-Encoding", "gzip, br")
		set.Serve(w, r)
		if n := w.Body.Len(); w.Code != 200 || n == 0 || n > maxCompressed {
			t.Errorf("%s: status %d, %d bytes, want at most %d", name, w.Code, n, maxCompressed)
		}
	}
}

// A browser keeps a file for good, so its path must change with its content, and both forms must be the same content.
func TestAFileIsServedAloneUnderTheNameWithItsHash(t *testing.T) {
	t.Parallel()
	set := assets.Load()
	path := pathOf(t, set, "app.js")
	read := func(encoding string) string {
		w, r := httptest.NewRecorder(), httptest.NewRequest("GET", path, nil)
		r.Header.Set("Accept-Encoding", encoding)
		set.Serve(w, r)
		if !strings.Contains(w.Header().Get("Cache-Control"), "immutable") || !strings.HasPrefix(w.Header().Get("Content-Type"), "text/javascript") {
			t.Errorf("%s: %v", path, w.Header())
		}
		if w.Header().Get("Content-Encoding") != "gzip" {
			return w.Body.String()
		}
		plain, err := gzip.NewReader(w.Body)
		if err != nil {
			t.Fatal(err)
		}
		text, err := io.ReadAll(plain)
		if err != nil {
			t.Fatal(err)
		}
		return string(text)
	}
	if plain, unzipped := read(""), read("gzip"); plain != unzipped || plain == "" {
		t.Errorf("%d bytes plain, %d bytes unzipped", len(plain), len(unzipped))
	}
	for _, other := range []string{"/assets/app.js", "/assets/app.AAAAAAAAAAAA.js", "/assets/", "/assets/../assets.go"} {
		w := httptest.NewRecorder()
		r := httptest.NewRequest("GET", "/", nil)
		r.URL.Path = other
		set.Serve(w, r)
		if w.Code != 404 {
			t.Errorf("%s: status %d, want 404", other, w.Code)
		}
	}
}

func pathOf(t *testing.T, set assets.Set, name string) string {
	t.Helper()
	path, err := set.Path(name)
	if err != nil {
		t.Fatal(err)
	}
	return path
}
