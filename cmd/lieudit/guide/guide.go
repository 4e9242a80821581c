// Package guide holds the operators' guide and the files that come with it: chapters in Markdown, alert rules, a dashboard,
// a unit of systemd. They are part of the program, so that every release explains itself. The files here are the only
// source: the command line and everything else that shows them read them from this package.
//
//	chapters/*.md ──> Chapters, FindChapter ──> Chapter.Format ──> lieudit guide CHAPTER
//	monitoring/*, systemd/* ──> Files, ReadFile ─────────────────> lieudit guide FILE, unchanged
package guide

import (
	"embed"
	"fmt"
	"io/fs"
	"path"
	"slices"
	"strings"
)

//go:embed chapters monitoring proxies systemd
var embedded embed.FS

// Chapter is one chapter of the guide. Its Text is Markdown of a small kind: headings, paragraphs, lists of one level,
// fenced code and tables.
type Chapter struct {
	Name  string // one word, by which the command line finds it
	Title string // the first heading
	Text  string
}

// chapterNames is the order in which the guide is read.
func chapterNames() []string {
	return []string{
		"start", "login", "keys", "addresses", "sites", "routes", "compose", "proxy", "instances", "sizes", "data", "backup", "erasure", "upgrade", "eventstoredb", "postgres", "meilisearch", "routers",
		"readiness", "metrics",
	}
}

// Chapters returns all chapters in the order in which they are read.
func Chapters() ([]Chapter, error) {
	var all []Chapter
	for _, name := range chapterNames() {
		c, err := readChapter(name)
		if err != nil {
			return nil, err
		}
		all = append(all, c)
	}
	return all, nil
}

// UnknownError means that the guide has neither a chapter nor a file of a name.
type UnknownError struct{ Name string }

func (e *UnknownError) Error() string {
	return fmt.Sprintf("the guide has no chapter and no file %q; lieudit guide lists them", e.Name)
}

// FindChapter returns the chapter of a name, in any case. Another name is an *UnknownError.
func FindChapter(name string) (Chapter, error) {
	name = strings.ToLower(name)
	if !slices.Contains(chapterNames(), name) {
		return Chapter{}, &UnknownError{name}
	}
	return readChapter(name)
}

// readChapter reads a chapter that is part of the program.
func readChapter(name string) (Chapter, error) {
	text, err := embedded.ReadFile("chapters/" + name + ".md")
	if err != nil {
		return Chapter{}, err
	}
	title, _, _ := strings.Cut(string(text), "\n")
	return Chapter{Name: name, Title: strings.TrimPrefix(title, "# "), Text: string(text)}, nil
}

// Files returns the paths of the files that come with the guide, in order.
func Files() ([]string, error) {
	var all []string
	err := fs.WalkDir(embedded, ".", func(name string, entry fs.DirEntry, err error) error {
		if err == nil && !entry.IsDir() && path.Dir(name) != "chapters" {
			all = append(all, name)
		}
		return err
	})
	return all, err
}

// ReadFile returns a file that comes with the guide, unchanged. A name that Files does not list is an *UnknownError.
func ReadFile(name string) ([]byte, error) {
	all, err := Files()
	if err != nil {
		return nil, err
	}
	if !slices.Contains(all, name) {
		return nil, &UnknownError{name}
	}
	return embedded.ReadFile(name)
}
