package pages_test

import (
	"go/ast"
	"go/parser"
	"go/token"
	"io/fs"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"lieudit/schemas/body"
)

// operationsWithoutPage are the paths of the customer area that no page asks for, with the reason.
var operationsWithoutPage = map[string]string{
	"/accounts/{}:erase":   "it destroys personal data for good: the command line asks for the id again, and writes what it did",
	"/accounts/{}:agency":  "joining and leaving an agency come with the pages of agencies",
	"/usage:adjust":        "a correction of a bill comes with the statements",
	"/projections:repair":  "it takes the event that readiness names, on the command line",
	"/projections:prune":   "it is for whoever upgrades, on the command line",
	"/projections:rebuild": "the page rebuilds one after the other",
	"/upgrade:finish":      "it cannot be taken back, and belongs to the steps of an upgrade on the command line",
}

// TestEveryOperationIsOnAPageOrSaysWhyNot compares the operations of the customer area with the paths that the sources of the pages
// name.
func TestEveryOperationIsOnAPageOrSaysWhyNot(t *testing.T) {
	t.Parallel()
	asked := findPaths(t)
	known := map[string]bool{}
	for _, o := range body.CustomerArea().Operations {
		path := variable.ReplaceAllString(o.Path, "{}")
		known[path] = true
		_, isLeftOut := operationsWithoutPage[path]
		switch {
		case !asked[path] && !isLeftOut:
			t.Errorf("%s %s is on no page, and operationsWithoutPage has no reason", o.Method, o.Path)
		case asked[path] && isLeftOut:
			t.Errorf("%s is on a page: take it out of operationsWithoutPage", path)
		}
	}
	for path := range operationsWithoutPage {
		if !known[path] {
			t.Errorf("operationsWithoutPage has %s, which is no operation", path)
		}
	}
}

var variable = regexp.MustCompile(`\{[^}]*\}|%s`)

// findPaths finds the string literals in the sources of the pages that are paths, with {} for their variables and without a query.
func findPaths(t *testing.T) map[string]bool {
	t.Helper()
	found := map[string]bool{}
	err := filepath.WalkDir(".", func(path string, entry fs.DirEntry, err error) error {
		if err != nil || entry.IsDir() || filepath.Ext(path) != ".go" || strings.HasSuffix(path, "_test.go") {
			return err
		}
		file, err := parser.ParseFile(token.NewFileSet(), path, nil, 0)
		if err != nil {
			return err
		}
		ast.Inspect(file, func(n ast.Node) bool {
			if e, ok := n.(ast.Expr); ok {
				if text, ok := literal(e); ok && strings.HasPrefix(text, "/") {
					text, _, _ = strings.Cut(text, "?")
					found[variable.ReplaceAllString(text, "{}")] = true
				}
			}
			return true
		})
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	return found
}
