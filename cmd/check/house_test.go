package main

import (
	"go/ast"
	"go/parser"
	"go/token"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"
)

// mayImport is the direction of imports: a folder's packages import those of the folders named, and their own.
var mayImport = map[string][]string{
	"schemas":     {},
	"eventstore":  {"schemas"},
	"commands":    {"schemas", "eventstore"},
	"projections": {"schemas", "eventstore"},
	"queries":     {"schemas"},
	"http":        {"schemas", "eventstore", "commands", "queries"},
	"cmd":         {"schemas", "eventstore", "commands", "projections", "queries", "http"},
}

// source is one file of the module.
type source struct {
	path   string // from the module's root
	folder string // the top-level folder
	file   *ast.File
	set    *token.FileSet
}

func (s source) test() bool {
	return strings.HasSuffix(s.path, "_test.go") || strings.HasSuffix(s.file.Name.Name, "test")
}

func sources(t *testing.T) []source {
	t.Helper()
	root := filepath.Join("..", "..")
	var all []source
	err := filepath.WalkDir(root, func(path string, entry fs.DirEntry, err error) error {
		if err != nil || entry.IsDir() || !strings.HasSuffix(path, ".go") {
			return err
		}
		set := token.NewFileSet()
		file, err := parser.ParseFile(set, path, nil, parser.ParseComments)
		if err != nil {
			return err
		}
		rel, err := filepath.Rel(root, path)
		folder, _, _ := strings.Cut(filepath.ToSlash(rel), "/")
		all = append(all, source{filepath.ToSlash(rel), folder, file, set})
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	if len(all) < 100 {
		t.Fatalf("found %d source files: this test looks in the wrong place", len(all))
	}
	return all
}

func TestImportsGoOneWay(t *testing.T) {
	t.Parallel()
	for _, s := range sources(t) {
		allowed, known := mayImport[s.folder]
		if !known {
			t.Errorf("%s: no package belongs in %s", s.path, s.folder)
		}
		for _, spec := range s.file.Imports {
			imported, _ := strconv.Unquote(spec.Path.Value)
			ours, ok := strings.CutPrefix(imported, "lieudit/")
			folder, _, _ := strings.Cut(ours, "/")
			if ok && folder != s.folder && !slices.Contains(allowed, folder) {
				t.Errorf("%s imports %s: %s may only import %v", s.path, imported, s.folder, allowed)
			}
			if imported == "testing" && !s.test() {
				t.Errorf("%s imports testing", s.path)
			}
		}
	}
}

func TestPackagesAreNamedOnceAndSayWhatTheyAre(t *testing.T) {
	t.Parallel()
	documented, named := map[string]bool{}, map[string]string{}
	for _, s := range sources(t) {
		dir, name := filepath.ToSlash(filepath.Dir(s.path)), s.file.Name.Name
		if strings.HasSuffix(s.path, "_test.go") {
			continue
		}
		documented[dir] = documented[dir] || s.file.Doc != nil
		if other, taken := named[name]; taken && other != dir && name != "main" {
			t.Errorf("%s and %s are both called %s", other, dir, name)
		}
		named[name] = dir
	}
	for dir, ok := range documented {
		if !ok {
			t.Errorf("%s has no package comment", dir)
		}
	}
}

func TestProductionCodeHasNoInitAndDoesNotPanic(t *testing.T) {
	t.Parallel()
	for _, s := range sources(t) {
		if s.test() {
			continue
		}
		ast.Inspect(s.file, func(n ast.Node) bool {
			switch n := n.(type) {
			case *ast.FuncDecl:
				if n.Name.Name == "init" && n.Recv == nil {
					t.Errorf("%s has an init", s.path)
				}
			case *ast.CallExpr:
				if f, ok := n.Fun.(*ast.Ident); ok && f.Name == "panic" && !repanics(n) {
					t.Errorf("%s panics at %s", s.path, s.set.Position(n.Pos()))
				}
			}
			return true
		})
	}
}

// repanics says whether a panic passes on what was recovered, or net/http's own way to cut an answer.
func repanics(call *ast.CallExpr) bool {
	switch arg := call.Args[0].(type) {
	case *ast.Ident:
		return true
	case *ast.SelectorExpr:
		return arg.Sel.Name == "ErrAbortHandler"
	}
	return false
}

func TestTopLevelHoldsOnlyWhatIsAgreed(t *testing.T) {
	t.Parallel()
	entries, err := os.ReadDir(filepath.Join("..", ".."))
	if err != nil {
		t.Fatal(err)
	}
	files := []string{"compose.yaml", "go.mod", "go.sum", "README.md", "CONTRIBUTING.md", "LICENSE", "lieudit-data"}
	for _, e := range entries {
		name := e.Name()
		if _, folder := mayImport[name]; !folder && !strings.HasPrefix(name, ".") && !slices.Contains(files, name) {
			t.Errorf("%s does not belong at the top level", name)
		}
	}
}
