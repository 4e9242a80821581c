package pages_test

import (
	"go/ast"
	"go/parser"
	"go/token"
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"testing"
	"text/template/parse"
)

// phrase is a text of the pages in both languages.
type phrase struct {
	where  string
	fr, en string
}

// wordsOfBoth are words that are written alike in both languages. Names, codes and numbers need not be here.
var wordsOfBoth = map[string]bool{
	"Actions": true, "Documentation": true, "Pages": true, "Service": true, "Session": true, "Usage": true, "Audit": true, "Quota": true, "Verdicts": true,
}

// TestEveryPhraseIsInBothLanguages reads the phrases out of all templates and Go files of the pages. Each has both languages, they
// differ unless the words are the same in both, and they take the same arguments in the same order.
func TestEveryPhraseIsInBothLanguages(t *testing.T) {
	t.Parallel()
	all := findPhrases(t)
	if len(all) < 100 {
		t.Fatalf("found %d phrases: this test looks in the wrong place", len(all))
	}
	for _, p := range all {
		switch {
		case strings.TrimSpace(p.fr) == "" || strings.TrimSpace(p.en) == "":
			t.Errorf("%s: %q and %q: one language is missing", p.where, p.fr, p.en)
		case p.fr == p.en && hasWords(p.fr) && !wordsOfBoth[p.fr]:
			t.Errorf("%s: %q is the same in both languages", p.where, p.fr)
		case verbsOf(p.fr) != verbsOf(p.en):
			t.Errorf("%s: %q takes %q, %q takes %q", p.where, p.fr, verbsOf(p.fr), p.en, verbsOf(p.en))
		}
	}
}

// TestFrenchIsTypographic holds French phrases to the typographic apostrophe and the guillemets.
func TestFrenchIsTypographic(t *testing.T) {
	t.Parallel()
	straight := regexp.MustCompile(`\p{L}'\p{L}`)
	for _, p := range findPhrases(t) {
		if text := tag.ReplaceAllString(p.fr, ""); straight.MatchString(text) || strings.Contains(text, "“") {
			t.Errorf("%s: %q has signs that French does not", p.where, p.fr)
		}
	}
}

var (
	tag   = regexp.MustCompile(`<[^>]*>`)
	verbs = regexp.MustCompile(`%[-+0-9.]*[a-z]`)
	word  = regexp.MustCompile(`\p{L}{3,}`)
)

func verbsOf(text string) string { return strings.Join(verbs.FindAllString(text, -1), " ") }

// hasWords reports whether a text has words that could be translated: a proper name alone has none.
func hasWords(text string) bool {
	return word.MatchString(verbs.ReplaceAllString(tag.ReplaceAllString(text, ""), ""))
}

// findPhrases reads the phrases of all files below this folder.
func findPhrases(t *testing.T) (all []phrase) {
	t.Helper()
	err := filepath.WalkDir(".", func(path string, entry fs.DirEntry, err error) error {
		if err != nil || entry.IsDir() {
			return err
		}
		switch filepath.Ext(path) {
		case ".html":
			all = append(all, phrasesOfTemplate(t, path)...)
		case ".go":
			if !strings.HasSuffix(path, "_test.go") {
				all = append(all, phrasesOfSource(t, path)...)
			}
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	return all
}

// phrasesOfTemplate finds {{t "fr" "en"}}, {{h "fr" "en"}} and {{count n "fr" "fr" "en" "en"}}, also inside other actions.
func phrasesOfTemplate(t *testing.T, path string) (all []phrase) {
	t.Helper()
	text, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	trees := map[string]*parse.Tree{}
	tree := parse.New(path)
	tree.Mode = parse.SkipFuncCheck
	if _, err := tree.Parse(string(text), "", "", trees); err != nil {
		t.Fatal(err)
	}
	for _, tr := range trees {
		walk(tr.Root, func(c *parse.CommandNode) {
			name, ok := c.Args[0].(*parse.IdentifierNode)
			if !ok {
				return
			}
			var texts []string
			for _, a := range c.Args[1:] {
				if s, ok := a.(*parse.StringNode); ok {
					texts = append(texts, s.Text)
				}
			}
			where := path + ": " + c.String()
			switch {
			case (name.Ident == "t" || name.Ident == "h") && len(texts) >= 2:
				all = append(all, phrase{where, texts[0], texts[1]})
			case name.Ident == "count" && len(texts) == 4:
				all = append(all, phrase{where, texts[0], texts[2]}, phrase{where, texts[1], texts[3]})
			case name.Ident == "t" || name.Ident == "h" || name.Ident == "count":
				t.Errorf("%s: the phrases are not literals", where)
			}
		})
	}
	return all
}

// walk calls visit for every command below a node.
func walk(n parse.Node, visit func(*parse.CommandNode)) {
	pipe := func(p *parse.PipeNode) {
		if p != nil {
			walk(p, visit)
		}
	}
	branch := func(b *parse.BranchNode) {
		pipe(b.Pipe)
		walk(b.List, visit)
		if b.ElseList != nil {
			walk(b.ElseList, visit)
		}
	}
	switch n := n.(type) {
	case *parse.ListNode:
		if n != nil {
			for _, inner := range n.Nodes {
				walk(inner, visit)
			}
		}
	case *parse.ActionNode:
		pipe(n.Pipe)
	case *parse.TemplateNode:
		pipe(n.Pipe)
	case *parse.IfNode:
		branch(&n.BranchNode)
	case *parse.RangeNode:
		branch(&n.BranchNode)
	case *parse.WithNode:
		branch(&n.BranchNode)
	case *parse.PipeNode:
		for _, c := range n.Cmds {
			walk(c, visit)
		}
	case *parse.CommandNode:
		visit(n)
		for _, a := range n.Args {
			walk(a, visit)
		}
	}
}

// phrasesOfSource finds i18n.Text{FR: …, EN: …} and the calls of T, in Go.
func phrasesOfSource(t *testing.T, path string) (all []phrase) {
	t.Helper()
	set := token.NewFileSet()
	file, err := parser.ParseFile(set, path, nil, 0)
	if err != nil {
		t.Fatal(err)
	}
	ast.Inspect(file, func(n ast.Node) bool {
		switch n := n.(type) {
		case *ast.CompositeLit:
			members := map[string]string{}
			for _, e := range n.Elts {
				if pair, ok := e.(*ast.KeyValueExpr); ok {
					if name, ok := pair.Key.(*ast.Ident); ok {
						if text, ok := literal(pair.Value); ok {
							members[name.Name] = text
						}
					}
				}
			}
			if len(members) == 2 && (members["FR"] != "" || members["EN"] != "") {
				all = append(all, phrase{set.Position(n.Pos()).String(), members["FR"], members["EN"]})
			}
		case *ast.CallExpr:
			if f, ok := n.Fun.(*ast.SelectorExpr); ok && f.Sel.Name == "T" && len(n.Args) >= 2 {
				fr, isFR := literal(n.Args[0])
				en, isEN := literal(n.Args[1])
				if isFR && isEN {
					all = append(all, phrase{set.Position(n.Pos()).String(), fr, en})
				}
			}
		}
		return true
	})
	return all
}

// literal is the text of a string literal, or of several that are joined.
func literal(e ast.Expr) (string, bool) {
	switch e := e.(type) {
	case *ast.BasicLit:
		text, err := strconv.Unquote(e.Value)
		return text, err == nil
	case *ast.BinaryExpr:
		left, ok := literal(e.X)
		right, alsoOK := literal(e.Y)
		return left + right, ok && alsoOK
	}
	return "", false
}
