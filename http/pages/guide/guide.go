// Package guide has the operators' guide as pages, readable without a session. The chapters are those of the command line (lieudit guide),
// which hands them in: their text is in one place, and in English.
//
//	Chapter.Text ──> parse ──> block, span ──> chapter.html
package guide

import (
	"embed"
	"net/http"
	"slices"

	"lieudit/http/pages/page"
	"lieudit/schemas/refusal"
)

//go:embed *.html
var templates embed.FS

// Chapter is a chapter of the guide. Text is Markdown of a small kind, as package guide of the command line has it.
type Chapter struct{ Name, Title, Text string }

// guide is the pages over the chapters, in the order in which they are read.
type guide struct {
	chapters []Chapter
	blocks   map[string][]block // by the name of the chapter
}

// Section is the pages.
func Section(chapters []Chapter) page.Section {
	g := &guide{chapters: chapters, blocks: map[string][]block{}}
	names := map[string]bool{}
	for _, c := range chapters {
		names[c.Name] = true
	}
	for _, c := range chapters {
		g.blocks[c.Name] = parse(c.Text, names)
	}
	return page.Section{
		Templates: templates,
		Rows: []page.Row{
			{Method: http.MethodGet, Path: "/guide", IsPublic: true, Serve: g.showContents},
			{Method: http.MethodGet, Path: "/guide/{chapter}", IsPublic: true, Serve: g.showChapter},
		},
	}
}

// contents is the data of contents.html and of chapter.html.
type contents struct {
	Chapters       []Chapter
	Here           string
	Title          string
	Blocks         []block
	Sections       []block // its headings
	Before, Behind *Chapter
}

func (g *guide) showContents(q *page.Request) (page.View, error) {
	return page.View{Template: "contents.html", Title: q.T("Guide de l’exploitant", "Operators’ guide"), IsWide: true, Data: contents{Chapters: g.chapters}}, nil
}

func (g *guide) showChapter(q *page.Request) (page.View, error) {
	i := slices.IndexFunc(g.chapters, func(c Chapter) bool { return c.Name == q.Vars["chapter"] })
	if i < 0 {
		return page.View{}, refusal.NotFound
	}
	c := g.chapters[i]
	data := contents{Chapters: g.chapters, Here: c.Name, Title: c.Title, Blocks: g.blocks[c.Name]}
	for _, b := range data.Blocks {
		if b.Kind == heading {
			data.Sections = append(data.Sections, b)
		}
	}
	if i > 0 {
		data.Before = &g.chapters[i-1]
	}
	if i < len(g.chapters)-1 {
		data.Behind = &g.chapters[i+1]
	}
	return page.View{Template: "chapter.html", Title: c.Title, IsWide: true, Data: data}, nil
}
