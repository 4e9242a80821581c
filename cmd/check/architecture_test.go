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

// allowedImports lists for each top-level folder the others that its packages may import; they may always import their own.
// Imports are one-way: no two folders import each other. The keys are all top-level folders that may exist.
//
// Projections fill the indexes in Meilisearch that queries search, and neither may import the other. The code that both need
// to reach the server is in schemas/meiliclient, next to the form of the index (schemas/siteindex).
var allowedImports = map[string][]string{
	"schemas":     {},
	"eventstore":  {"schemas"},
	"commands":    {"schemas", "eventstore"},
	"projections": {"schemas", "eventstore"},
	"queries":     {"schemas", "eventstore"},
	"http":        {"schemas", "eventstore", "commands", "queries"},
	"cmd":         {"schemas", "eventstore", "commands", "projections", "queries", "http"},
}

// testsMayImport lists what tests of a folder may import in addition. Tests of commands read the results through queries.
var testsMayImport = map[string][]string{"commands": {"queries"}}

// source is one parsed file of the module.
type source struct {
	path      string // from the module's root, with slashes
	topFolder string
	file      *ast.File
	fset      *token.FileSet
}

// isTestSource reports whether a file is used only by tests: a test file, or one of a package whose name ends in "test".
func (s source) isTestSource() bool {
	return strings.HasSuffix(s.path, "_test.go") || strings.HasSuffix(s.file.Name.Name, "test")
}

func parseSources(t *testing.T) []source {
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
		t.Fatalf("found %d source files: this test looks in the wrong place", len(all)) // otherwise every test would pass on nothing
	}
	return all
}

func TestImportsGoOneWay(t *testing.T) {
	t.Parallel()
	for _, s := range parseSources(t) {
		allowed, known := allowedImports[s.topFolder]
		if !known {
			t.Errorf("%s: no package belongs in %s", s.path, s.topFolder)
		}
		if s.isTestSource() {
			allowed = slices.Concat(allowed, testsMayImport[s.topFolder])
		}
		for _, spec := range s.file.Imports {
			imported, _ := strconv.Unquote(spec.Path.Value)
			ours, ok := strings.CutPrefix(imported, "lieudit/")
			folder, _, _ := strings.Cut(ours, "/")
			if ok && folder != s.topFolder && !slices.Contains(allowed, folder) {
				t.Errorf("%s imports %s: %s may only import %v", s.path, imported, s.topFolder, allowed)
			}
			if imported == "testing" && !s.isTestSource() {
				t.Errorf("%s imports testing", s.path)
			}
		}
	}
}

// A package whose name ends in "test" has what only tests need: faults, hostile inputs, servers that pretend. The benches inject faults too,
// and the check reads which tests belong to which level.
func TestTheShippedProgramContainsNoTestPackage(t *testing.T) {
	t.Parallel()
	for _, s := range parseSources(t) {
		if s.isTestSource() || s.topFolder == "cmd" && !strings.HasPrefix(s.path, "cmd/lieudit/") {
			continue
		}
		for _, spec := range s.file.Imports {
			imported, _ := strconv.Unquote(spec.Path.Value)
			if strings.HasPrefix(imported, "lieudit/") && strings.HasSuffix(imported, "test") {
				t.Errorf("%s imports %s", s.path, imported)
			}
		}
	}
}

func TestEveryPackageHasAComment(t *testing.T) {
	t.Parallel()
	documented := map[string]bool{}
	for _, s := range parseSources(t) {
		dir := filepath.ToSlash(filepath.Dir(s.path))
		if strings.HasSuffix(s.path, "_test.go") {
			continue
		}
		documented[dir] = documented[dir] || s.file.Doc != nil
	}
	for dir, ok := range documented {
		if !ok {
			t.Errorf("%s has no package comment", dir)
		}
	}
}

func TestProductionCodeHasNoInitAndNoPanic(t *testing.T) {
	t.Parallel()
	for _, s := range parseSources(t) {
		if s.isTestSource() {
			continue
		}
		ast.Inspect(s.file, func(n ast.Node) bool {
			switch n := n.(type) {
			case *ast.FuncDecl:
				if n.Name.Name == "init" && n.Recv == nil {
					t.Errorf("%s has an init", s.path)
				}
			case *ast.CallExpr:
				if f, ok := n.Fun.(*ast.Ident); ok && f.Name == "panic" && !isAllowedPanic(n) {
					t.Errorf("%s panics at %s", s.path, s.fset.Position(n.Pos()))
				}
			}
			return true
		})
	}
}

// isAllowedPanic allows a panic with a variable, which passes on a recovered value, and http.ErrAbortHandler, with which a
// handler aborts its answer.
func isAllowedPanic(call *ast.CallExpr) bool {
	switch arg := call.Args[0].(type) {
	case *ast.Ident:
		return true
	case *ast.SelectorExpr:
		return arg.Sel.Name == "ErrAbortHandler"
	}
	return false
}

func TestTopLevelHoldsNoOtherFolder(t *testing.T) {
	t.Parallel()
	entries, err := os.ReadDir(filepath.Join("..", ".."))
	if err != nil {
		t.Fatal(err)
	}
	files := []string{"compose.yaml", "go.mod", "go.sum", "README.md", "CONTRIBUTING.md", "LICENSE", "lieudit-data"}
	for _, e := range entries {
		name := e.Name()
		if _, folder := allowedImports[name]; !folder && !strings.HasPrefix(name, ".") && !slices.Contains(files, name) {
			t.Errorf("%s does not belong at the top level", name)
		}
	}
}

func TestPackagesWithoutTheRaceDetectorStartNoGoroutine(t *testing.T) {
	t.Parallel()
	byPackage := map[string][]source{}
	for _, s := range parseSources(t) {
		name := "lieudit/" + filepath.ToSlash(filepath.Dir(s.path))
		byPackage[name] = append(byPackage[name], s)
	}
	for _, name := range packagesWithoutGoroutines() {
		sources := reachableSources(byPackage, name)
		if len(sources) == 0 {
			t.Errorf("there is no package %s", name)
		}
		for _, s := range sources {
			if found := findConcurrency(s); found != "" {
				t.Errorf("%s: %s has %s: take the package out of packagesWithoutGoroutines", name, s.path, found)
			}
		}
	}
}

// reachableSources are the files of a package, its tests included, and of all packages of this module that they import.
func reachableSources(byPackage map[string][]source, name string) (reachable []source) {
	seen, names := map[string]bool{name: true}, []string{name}
	for len(names) > 0 {
		current := names[0]
		names = names[1:]
		for _, s := range byPackage[current] {
			if current != name && strings.HasSuffix(s.path, "_test.go") {
				continue
			}
			reachable = append(reachable, s)
			for _, spec := range s.file.Imports {
				imported, _ := strconv.Unquote(spec.Path.Value)
				if _, ours := byPackage[imported]; ours && !seen[imported] {
					seen[imported] = true
					names = append(names, imported)
				}
			}
		}
	}
	return reachable
}

// findConcurrency names what a file uses to start goroutines or to lock something, or returns "".
func findConcurrency(s source) (found string) {
	for _, spec := range s.file.Imports {
		switch path, _ := strconv.Unquote(spec.Path.Value); path {
		case "sync", "sync/atomic", "database/sql", "golang.org/x/sync/errgroup", "testing/synctest":
			found = "the import " + path
		}
	}
	ast.Inspect(s.file, func(n ast.Node) bool {
		switch n := n.(type) {
		case *ast.GoStmt:
			found = "a go statement"
		case *ast.ChanType:
			found = "a channel"
		case *ast.SelectorExpr:
			switch n.Sel.Name {
			case "Go", "AfterFunc", "RunParallel", "NewServer", "NewTLSServer", "NewUnstartedServer", "Serve", "ListenAndServe":
				found = n.Sel.Name
			}
		}
		return true
	})
	return found
}

// packageStateCalls are calls and types whose result, kept at package level, all instances of a process would share.
var (
	packageStateCalls = []string{
		"time.NewTimer", "time.NewTicker", "time.After", "time.AfterFunc", "time.Tick", "semaphore.NewWeighted", "sync.NewCond",
		"context.WithCancel", "context.WithCancelCause", "context.WithTimeout", "context.WithTimeoutCause", "context.WithDeadline",
		"context.WithDeadlineCause", "context.AfterFunc",
	}
	packageStateTypes = []string{"sync.Pool", "sync.WaitGroup", "sync.Cond", "errgroup.Group"}
)

// A simulation runs several instances in one process, and each of its worlds in a bubble of its own: everything that waits,
// or is waited for, must belong to an instance.
func TestNothingThatWaitsIsAtPackageLevel(t *testing.T) {
	t.Parallel()
	for _, s := range parseSources(t) {
		if s.isTestSource() || strings.HasPrefix(s.path, "cmd/bench/") || strings.HasPrefix(s.path, "cmd/check/") {
			continue
		}
		for _, d := range s.file.Decls {
			if g, ok := d.(*ast.GenDecl); ok && g.Tok == token.VAR {
				for _, found := range findPackageState(g) {
					t.Errorf("%s: %s at package level", s.fset.Position(g.Pos()), found)
				}
			}
		}
	}
}

// findGoStatements names each goroutine that a function starts with go.
func findGoStatements(function *ast.FuncLit) (found []string) {
	ast.Inspect(function, func(n ast.Node) bool {
		if _, ok := n.(*ast.GoStmt); ok {
			found = append(found, "a go statement")
		}
		return true
	})
	return found
}

func TestWhatWaitsAtPackageLevelIsFound(t *testing.T) {
	t.Parallel()
	for declaration, want := range map[string]int{
		"var done chan struct{}":                                                       1,
		"var tick = time.Tick(pause)":                                                  1,
		"var changed = sync.NewCond(&lock)":                                            1,
		"var changed sync.Cond":                                                        1,
		"var ctx, cancel = context.WithTimeout(background, pause)":                     1,
		"var ctx, cancel = context.WithDeadline(background, end)":                      1,
		"var start = func() { go loop() }":                                             1,
		"var steps = map[string]step{`a`: {run: func() { go loop() }}}":                1,
		"var n = func() int { go loop(); return 1 }()":                                 1,
		"var jobs = func() any { return make(chan int) }()":                            1,
		"var jobs = func() any { return make(chan int) }":                              0,
		"var wait = func() { <-time.After(pause) }":                                    0,
		"var load = sync.OnceValues(func() (*Table, error) { return decode(packed) })": 0,
	} {
		file, err := parser.ParseFile(token.NewFileSet(), "a.go", "package a\n"+declaration, 0)
		if err != nil {
			t.Fatalf("%s: %v", declaration, err)
		}
		if got := findPackageState(file.Decls[0]); len(got) != want {
			t.Errorf("%s: found %q, want %d", declaration, got, want)
		}
	}
}

// findPackageState names the waiting things that a declaration at package level makes. A function's own belong to its caller,
// unless it is called on the spot; but a function held by a variable must not start a goroutine, which would have no owner.
func findPackageState(declaration ast.Node) (found []string) {
	calledAtOnce := map[ast.Expr]bool{}
	ast.Inspect(declaration, func(n ast.Node) bool {
		switch n := n.(type) {
		case *ast.CallExpr:
			calledAtOnce[n.Fun] = true
		case *ast.FuncLit:
			if !calledAtOnce[n] {
				found = append(found, findGoStatements(n)...)
				return false
			}
		case *ast.GoStmt:
			found = append(found, "a go statement")
		case *ast.ChanType:
			found = append(found, "a channel")
		case *ast.SelectorExpr:
			if p, ok := n.X.(*ast.Ident); ok {
				if name := p.Name + "." + n.Sel.Name; slices.Contains(packageStateCalls, name) || slices.Contains(packageStateTypes, name) {
					found = append(found, name)
				}
			}
		}
		return true
	})
	return found
}
