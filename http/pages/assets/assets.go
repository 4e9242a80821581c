// Package assets has the files that pages load: one style sheet, one script module, and the icons, which stand in the pages themselves. A
// file is served under a name with the hash of its content, so that browsers keep it for good and never mix two versions. Nothing
// comes from elsewhere, and there is no build step: the files are as they were written.
package assets

import (
	"bytes"
	"compress/gzip"
	"crypto/sha256"
	"embed"
	"encoding/base64"
	"fmt"
	"html/template"
	"maps"
	"net/http"
	"path"
	"slices"
	"strconv"
	"strings"
)

//go:embed files
var files embed.FS

// Prefix is what the paths of all assets begin with.
const Prefix = "/assets/"

// asset is a file with its names and both forms in which it is sent.
type asset struct {
	path        string
	mediaType   string
	plain, gzip []byte
}

// Set are the files of the program, as they are served. It is safe for concurrent use.
type Set struct{ byName, byPath map[string]asset }

// Load reads and compresses all files.
func Load() Set {
	set := Set{map[string]asset{}, map[string]asset{}}
	for name, content := range readFolder("files") {
		set.add(name, content)
	}
	// The sheets of the folder css are one sheet, in the order of their names.
	var sheet []byte
	sheets := readFolder("files/css")
	for _, name := range slices.Sorted(maps.Keys(sheets)) {
		sheet = append(sheet, sheets[name]...)
	}
	set.add("app.css", sheet)
	return set
}

// readFolder reads the files of a folder, without those of folders in it. The files are part of the program, so reading them cannot fail.
func readFolder(folder string) map[string][]byte {
	entries, _ := files.ReadDir(folder)
	all := map[string][]byte{}
	for _, entry := range entries {
		if !entry.IsDir() {
			all[entry.Name()], _ = files.ReadFile(folder + "/" + entry.Name())
		}
	}
	return all
}

func (s Set) add(name string, content []byte) {
	a := newAsset(name, content)
	s.byName[name], s.byPath[a.path] = a, a
}

func newAsset(name string, content []byte) asset {
	sum, extension := sha256.Sum256(content), path.Ext(name)
	hash := base64.RawURLEncoding.EncodeToString(sum[:9])
	var text bytes.Buffer
	w, _ := gzip.NewWriterLevel(&text, gzip.BestCompression) // the level is a valid one
	w.Write(content)                                         // into memory
	w.Close()
	return asset{
		path:      Prefix + strings.TrimSuffix(name, extension) + "." + hash + extension,
		mediaType: mediaTypes[extension], plain: content, gzip: text.Bytes(),
	}
}

var mediaTypes = map[string]string{".css": "text/css; charset=utf-8", ".js": "text/javascript; charset=utf-8", ".svg": "image/svg+xml"}

// Path returns the path of a file. It fails for a name that no file has.
func (s Set) Path(name string) (string, error) {
	a, ok := s.byName[name]
	if !ok {
		return "", fmt.Errorf("no asset %q", name)
	}
	return a.path, nil
}

// Serve answers a request for a file.
func (s Set) Serve(w http.ResponseWriter, r *http.Request) {
	a, ok := s.byPath[r.URL.Path]
	if !ok {
		http.NotFound(w, r)
		return
	}
	a.serve(w, r)
}

func (a asset) serve(w http.ResponseWriter, r *http.Request) {
	h := w.Header()
	h.Set("Content-Type", a.mediaType)
	h.Set("Cache-Control", "public, max-age=31536000, immutable")
	h.Set("Vary", "Accept-Encoding")
	content := a.plain
	if strings.Contains(r.Header.Get("Accept-Encoding"), "gzip") {
		content = a.gzip
		h.Set("Content-Encoding", "gzip")
	}
	h.Set("Content-Length", strconv.Itoa(len(content)))
	w.Write(content) // a browser that went away is not an error of the service
}

// Icon returns an icon. It is decoration: the words beside it say what it means. It fails for a name that no icon has.
func Icon(name string) (template.HTML, error) {
	shape, ok := icons[name]
	if !ok {
		return "", fmt.Errorf("no icon %q", name)
	}
	return template.HTML(`<svg class="icon" viewBox="0 0 24 24" aria-hidden="true" focusable="false">` + shape + `</svg>`), nil
}

// icons are drawn on a square of 24, by lines that have the colour of the text.
var icons = map[string]string{
	"arrow":    `<path d="M5 12h14M13 6l6 6-6 6"/>`,
	"back":     `<path d="M19 12H5M11 6l-6 6 6 6"/>`,
	"book":     `<path d="M4 5a2 2 0 0 1 2-2h14v16H6a2 2 0 0 0-2 2zM4 19a2 2 0 0 1 2-2h14"/>`,
	"chart":    `<path d="M4 20V10M10 20V4M16 20v-7M22 20H2"/>`,
	"check":    `<path d="M4 12.5l5.5 5.5L20 6.5"/>`,
	"clock":    `<circle cx="12" cy="12" r="9"/><path d="M12 7v5l3.5 2"/>`,
	"copy":     `<rect x="9" y="9" width="12" height="12" rx="2"/><path d="M15 9V5a2 2 0 0 0-2-2H5a2 2 0 0 0-2 2v8a2 2 0 0 0 2 2h4"/>`,
	"cross":    `<path d="M6 6l12 12M18 6L6 18"/>`,
	"down":     `<path d="M6 9l6 6 6-6"/>`,
	"download": `<path d="M12 4v11M7 10.5l5 5 5-5M4 20h16"/>`,
	"globe":    `<circle cx="12" cy="12" r="9"/><path d="M3 12h18M12 3c5 5.5 5 12.5 0 18M12 3c-5 5.5-5 12.5 0 18"/>`,
	"info":     `<circle cx="12" cy="12" r="9"/><path d="M12 11v5.500M12 7.500v.2"/>`,
	"key":      `<circle cx="8" cy="15" r="4.5"/><path d="M11.5 11.500L20 3M16.5 6.500l3 3"/>`,
	"moon":     `<path d="M20 14.500A8.5 8.5 0 0 1 9.5 4a8.5 8.5 0 1 0 10.5 10.500z"/>`,
	"plus":     `<path d="M12 5v14M5 12h14"/>`,
	"print":    `<path d="M7 9V3h10v6M7 18H4v-8h16v8h-3M7 14h10v7H7z"/>`,
	"refresh":  `<path d="M20 11a8 8 0 1 0-2.3 6.300M20 4v7h-7"/>`,
	"shield":   `<path d="M12 3l8 3v6c0 5-3.5 8-8 9-4.5-1-8-4-8-9V6z"/>`,
	"sun":      `<circle cx="12" cy="12" r="4"/><path d="M12 2v2.500M12 19.500V22M2 12h2.500M19.5 12H22M5 5l1.7 1.700M17.3 17.300L19 19M5 19l1.7-1.700M17.3 6.700L19 5"/>`,
	"user":     `<circle cx="12" cy="8" r="4"/><path d="M4 21c.7-4.5 4-6.5 8-6.500s7.3 2 8 6.5"/>`,
	"warning":  `<path d="M12 3.500L22 20.500H2zM12 10v5M12 17.700v.2"/>`,
}
