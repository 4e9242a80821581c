package main

import (
	"go/ast"
	"go/parser"
	"go/token"
	"slices"
	"strings"
	"testing"
)

// timeKind is the clock that a time can be compared by.
type timeKind int

const (
	unknownTime timeKind = iota
	elapsedTime          // of time.Now: it has a monotonic reading, which no setting of the wall clock changes
	wallTime             // without one
)

// The calls that make a time without a monotonic reading. The methods strip it from any time.
var (
	wallFunctions    = []string{"Unix", "UnixMilli", "UnixMicro", "Date"}
	strippingMethods = []string{"UTC", "Local", "In", "Round", "Truncate", "AddDate", "ModTime"}
	unixMethods      = []string{"Unix", "UnixMilli", "UnixMicro", "UnixNano"}
	comparingMethods = []string{"Sub", "Before", "After", "Equal", "Compare"}
)

// Elapsed time comes from time.Now and is compared only with itself. Wall time comes from a clock that is passed in. So
// production code never strips the monotonic reading from a time of time.Now, and never compares it with a time that has lost
// its own.
//
// The test sees how one function uses its own variables. It does not know what a field, a parameter or the result of another
// function holds, nor whether the wrong one of the two clocks was passed in.
func TestElapsedTimeIsNotToldByTheWallClock(t *testing.T) {
	t.Parallel()
	for _, s := range parseSources(t) {
		if s.isTestSource() || strings.HasPrefix(s.path, "cmd/bench/") || strings.HasPrefix(s.path, "cmd/check/") {
			continue
		}
		for _, found := range findMixedClocks(s.file) {
			t.Errorf("%s: %s", s.fset.Position(found.at), found.what)
		}
	}
}

// mixedClocks is a line that measures elapsed time with a wall clock.
type mixedClocks struct {
	at   token.Pos
	what string
}

// findMixedClocks finds such lines in a file, function by function.
func findMixedClocks(file *ast.File) (found []mixedClocks) {
	for _, d := range file.Decls {
		f := clockFunction{kinds: collectTimes(d)}
		ast.Inspect(d, func(n ast.Node) bool {
			if call, ok := n.(*ast.CallExpr); ok {
				if what := f.checkCall(call); what != "" {
					found = append(found, mixedClocks{call.Pos(), what})
				}
			}
			return true
		})
	}
	return found
}

// clockFunction is a function with the kinds of its variables, by name. A name with several kinds, perhaps in different
// blocks, has no kind.
type clockFunction struct{ kinds map[string]timeKind }

// collectTimes returns the kinds of the variables that a declaration makes or changes.
func collectTimes(d ast.Node) map[string]timeKind {
	f := clockFunction{map[string]timeKind{}}
	ast.Inspect(d, func(n ast.Node) bool {
		switch n := n.(type) {
		case *ast.Field: // a parameter
			f.noteAll(expressionsOf(n.Names), nil)
		case *ast.AssignStmt:
			f.noteAll(n.Lhs, n.Rhs)
		case *ast.ValueSpec:
			f.noteAll(expressionsOf(n.Names), n.Values)
		case *ast.RangeStmt:
			f.noteAll([]ast.Expr{n.Key, n.Value}, nil)
		}
		return true
	})
	return f.kinds
}

func expressionsOf(names []*ast.Ident) (all []ast.Expr) {
	for _, name := range names {
		all = append(all, name)
	}
	return all
}

// noteAll notes the kinds of variables that get values. If their numbers differ, the values are the results of one call, or
// elements.
func (f clockFunction) noteAll(variables, values []ast.Expr) {
	for i, v := range variables {
		if len(variables) == len(values) {
			f.note(v, f.kindOf(values[i]))
		} else {
			f.note(v, unknownTime)
		}
	}
}

// note notes the kind of a variable and ignores anything else.
func (f clockFunction) note(variable ast.Expr, kind timeKind) {
	name, ok := variable.(*ast.Ident)
	if !ok {
		return
	}
	if before, seen := f.kinds[name.Name]; seen && before != kind {
		kind = unknownTime
	}
	f.kinds[name.Name] = kind
}

// kindOf returns the kind of an expression.
func (f clockFunction) kindOf(e ast.Expr) timeKind {
	switch e := e.(type) {
	case *ast.Ident:
		return f.kinds[e.Name]
	case *ast.ParenExpr:
		return f.kindOf(e.X)
	case *ast.CallExpr:
		method, ok := e.Fun.(*ast.SelectorExpr)
		switch {
		case !ok:
			return unknownTime
		case isTimePackage(method.X) && method.Sel.Name == "Now":
			return elapsedTime
		case isTimePackage(method.X) && slices.Contains(wallFunctions, method.Sel.Name):
			return wallTime
		case slices.Contains(strippingMethods, method.Sel.Name):
			return wallTime
		case method.Sel.Name == "Add":
			return f.kindOf(method.X)
		}
	}
	return unknownTime
}

func isTimePackage(e ast.Expr) bool {
	name, ok := e.(*ast.Ident)
	return ok && name.Name == "time"
}

// checkCall describes what is wrong with a call, or returns "".
func (f clockFunction) checkCall(call *ast.CallExpr) string {
	method, ok := call.Fun.(*ast.SelectorExpr)
	if !ok {
		return ""
	}
	name := method.Sel.Name
	if isTimePackage(method.X) {
		if (name == "Since" || name == "Until") && len(call.Args) == 1 && f.kindOf(call.Args[0]) == wallTime {
			return "time." + name + " of a time without a monotonic reading"
		}
		return ""
	}
	receiver := f.kindOf(method.X)
	switch {
	case receiver == elapsedTime && (slices.Contains(unixMethods, name) || slices.Contains(strippingMethods, name)):
		return name + " takes the monotonic reading off a time of time.Now: a wall clock is handed in, elapsed time is kept as it is"
	case slices.Contains(comparingMethods, name) && len(call.Args) == 1:
		argument := f.kindOf(call.Args[0])
		if receiver == elapsedTime && argument == wallTime || receiver == wallTime && argument == elapsedTime {
			return name + " of a time of time.Now and of one without a monotonic reading"
		}
	}
	return ""
}

func TestMixedClocksAreFound(t *testing.T) {
	t.Parallel()
	for body, want := range map[string]int{
		// What goes wrong when the wall clock is set:
		"last.Store(time.Now().UnixNano())":                                  1,
		"now := time.Now().UnixNano(); _ = now":                              1,
		"now := time.Now(); last.Store(now.UnixMicro())":                     1,
		"end := time.Now().Add(pause); last.Store(end.Unix())":               1,
		"began := time.Now().UTC(); _ = time.Since(began)":                   2,
		"return time.Since(time.Unix(0, last.Load()))":                       1,
		"at := time.UnixMicro(last.Load()); return time.Until(at)":           1,
		"var at = time.UnixMilli(5); return time.Now().Sub(at)":              1,
		"now := time.Now(); return now.Sub(file.ModTime())":                  1,
		"return file.ModTime().Before((time.Now()).Add(-age))":               1,
		"return time.Now().After(time.Date(2026, 1, 1, 0, 0, 0, 0, nil))":    1,
		"run(func() { now := time.Now(); last.Store(now.Truncate(pause)) })": 1,
		// What is right, or cannot be known:
		"began := time.Now(); return time.Since(began).Round(time.Second)":           0,
		"end := time.Now().Add(pause); return !time.Now().Before(end)":               0,
		"return time.Since(epoch) - time.Duration(last.Load())":                      0,
		"return s.wall().Sub(time.Unix(seen, 0))":                                    0,
		"now := wall(); last.Store(now.Unix()); at := now.UTC(); return now.Sub(at)": 0,
		"return at.Sub(r.Time)": 0,
		"now := time.Now(); if test { now = wall() }; return now.Unix()":          0,
		"at, err := time.Parse(layout, text); return time.Now().Sub(at), err":     0,
		"for _, now := range all { _ = now.Unix() }; now := time.Now(); _ = now":  0,
		"run(func(now time.Time) { _ = now.Unix() }); now := time.Now(); _ = now": 0,
	} {
		file, err := parser.ParseFile(token.NewFileSet(), "a.go", "package a\nfunc f() {"+body+"}", 0)
		if err != nil {
			t.Fatalf("%s: %v", body, err)
		}
		if got := findMixedClocks(file); len(got) != want {
			t.Errorf("%s: found %v, want %d", body, got, want)
		}
	}
}
