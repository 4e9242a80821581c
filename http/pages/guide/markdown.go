package guide

import (
	"regexp"
	"strings"
)

// kind is what a block is.
type kind string

const (
	heading    kind = "heading"
	subheading kind = "subheading"
	paragraph  kind = "paragraph"
	list       kind = "list"
	code       kind = "code"
	table      kind = "table"
)

// block is a part of a chapter, without its title.
type block struct {
	Kind  kind
	ID    string     // of a heading
	Spans []span     // of a heading or a paragraph
	Items [][]span   // of a list
	Code  string     // of code
	Head  [][]span   // of a table
	Rows  [][][]span // of a table
}

// span is a part of a line.
type span struct {
	Text   string
	IsCode bool
	IsTerm bool   // a word that is explained
	Link   string // to a chapter
}

// parse reads a chapter. A library would bring all of Markdown and its HTML; the guide has these six forms, and a test holds it to them.
// Blocks go to a template, which escapes them. names are the chapters.
func parse(text string, names map[string]bool) []block {
	p := parser{names: names}
	for line := range strings.SplitSeq(text, "\n") {
		p.addLine(line)
	}
	p.endBlock()
	return p.blocks
}

// parser collects the lines of one block, and adds the block when it ends.
type parser struct {
	names  map[string]bool
	blocks []block
	lines  []string // of a paragraph, or of the last item
	items  []string // of a list, but the last
	isList bool
	isCode bool
	rows   []string
}

// addLine takes one line.
func (p *parser) addLine(line string) {
	switch {
	case strings.HasPrefix(line, "```"):
		if p.isCode {
			p.blocks = append(p.blocks, block{Kind: code, Code: strings.Join(p.lines, "\n")})
			p.lines = nil
		} else {
			p.endBlock()
		}
		p.isCode = !p.isCode
	case p.isCode:
		p.lines = append(p.lines, line)
	case line == "":
		p.endBlock()
	case strings.HasPrefix(line, "#"):
		p.endBlock()
		p.addHeading(line)
	case strings.HasPrefix(line, "|"):
		if len(p.lines) > 0 {
			p.endBlock()
		}
		p.rows = append(p.rows, line)
	case strings.HasPrefix(line, "- "):
		p.startItem(strings.TrimPrefix(line, "- "))
	default:
		p.lines = append(p.lines, strings.TrimSpace(line))
	}
}

var nonWord = regexp.MustCompile(`[^a-z0-9]+`)

func (p *parser) addHeading(line string) {
	marks, text, _ := strings.Cut(line, " ")
	b := block{Kind: heading, ID: strings.Trim(nonWord.ReplaceAllString(strings.ToLower(text), "-"), "-"), Spans: p.spansOf(text)}
	switch marks {
	case "#": // the page has the title
		return
	case "###":
		b.Kind = subheading
	}
	p.blocks = append(p.blocks, b)
}

func (p *parser) startItem(text string) {
	if !p.isList {
		p.endBlock()
	} else {
		p.items = append(p.items, strings.Join(p.lines, " "))
	}
	p.isList, p.lines = true, []string{text}
}

// endBlock adds the paragraph, list or table that has been collected.
func (p *parser) endBlock() {
	text := strings.Join(p.lines, " ")
	switch {
	case p.isList:
		b := block{Kind: list}
		for _, item := range append(p.items, text) {
			b.Items = append(b.Items, p.spansOf(item))
		}
		p.blocks = append(p.blocks, b)
	case len(p.rows) > 0:
		p.blocks = append(p.blocks, p.tableOf(p.rows))
	case text != "":
		p.blocks = append(p.blocks, block{Kind: paragraph, Spans: p.spansOf(text)})
	}
	p.lines, p.items, p.rows, p.isList = nil, nil, nil, false
}

// tableOf reads rows. The first has the heads; the line under it has no words.
func (p *parser) tableOf(rows []string) block {
	b := block{Kind: table}
	const escaped, placeholder = `\|`, "\x00" // a bar inside a cell
	for i, row := range rows {
		if strings.Trim(row, "|-: ") == "" {
			continue
		}
		row = strings.ReplaceAll(row, escaped, placeholder)
		var cells [][]span
		for cell := range strings.SplitSeq(strings.Trim(strings.TrimSpace(row), "|"), "|") {
			cells = append(cells, p.spansOf(strings.ReplaceAll(strings.TrimSpace(cell), placeholder, "|")))
		}
		if i == 0 {
			b.Head = cells
		} else {
			b.Rows = append(b.Rows, cells)
		}
	}
	return b
}

var (
	marked  = regexp.MustCompile("`[^`]+`" + `|\*[^*\s][^*]*\*`)
	chapter = regexp.MustCompile(`^lieudit guide ([a-z]+)$`)
)

// spansOf reads the code and the terms of a line.
func (p *parser) spansOf(text string) (all []span) {
	end := 0
	for _, at := range marked.FindAllStringIndex(text, -1) {
		if at[0] > end {
			all = append(all, span{Text: text[end:at[0]]})
		}
		inner := text[at[0]+1 : at[1]-1]
		s := span{Text: inner, IsCode: text[at[0]] == '`', IsTerm: text[at[0]] == '*'}
		if m := chapter.FindStringSubmatch(inner); m != nil && s.IsCode && p.names[m[1]] {
			s.Link = "/guide/" + m[1]
		}
		all = append(all, s)
		end = at[1]
	}
	if end < len(text) {
		all = append(all, span{Text: text[end:]})
	}
	return all
}
