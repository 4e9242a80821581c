package simulate

import (
	"context"
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"

	"golang.org/x/tools/cover"
)

// mutatedPackages are the packages that mutations are drawn from.
var mutatedPackages = []string{"./commands/...", "./projections/...", "./eventstore/feed", "./schemas/usagefold"}

// outsidePackage is not simulated: it needs Meilisearch.
const outsidePackage = "projections/searchindex/"

// RunMutations draws mutations of covered lines, plants one after another and plays each copy of the tree, as RunPlanted does. A mutation
// without an observable effect is never found; a person decides which those are.
func RunMutations(ctx context.Context, o Options, number int, seed uint64) (all []Found, err error) {
	covered, err := readCoverage(ctx, o.Tree)
	if err != nil {
		return nil, err
	}
	drawn, err := drawMutations(o.Tree, covered, number, seed)
	if err != nil {
		return nil, err
	}
	for _, m := range drawn {
		if ctx.Err() != nil {
			return all, ctx.Err()
		}
		found, err := runPlanted(ctx, o, m)
		if err != nil { // usually it does not compile: a dropped call leaves a variable unused
			found.Text = "not playable: " + firstLine(found.Text)
		}
		all = append(all, found)
		o.Log(fmt.Sprintf("%s: %d days, %s", found.Name, found.Days, found.Text))
	}
	return all, nil
}

func firstLine(text string) string {
	line, _, _ := strings.Cut(strings.TrimSpace(text), "\n")
	return line
}

// readCoverage runs the tests of the packages and returns their profiles.
func readCoverage(ctx context.Context, tree string) ([]*cover.Profile, error) {
	profile, err := os.CreateTemp("", "lieudit-cover-*")
	if err != nil {
		return nil, err
	}
	profile.Close()
	defer os.Remove(profile.Name())
	cmd := exec.CommandContext(ctx, "go", append([]string{"test", "-coverprofile", profile.Name()}, mutatedPackages...)...)
	cmd.Dir = tree
	if out, err := cmd.CombinedOutput(); err != nil {
		return nil, fmt.Errorf("coverage: %w\n%s", err, out)
	}
	return cover.ParseProfiles(profile.Name())
}

// drawMutations draws mutations at different places from all that there are.
func drawMutations(tree string, covered []*cover.Profile, number int, seed uint64) (drawn []planted, err error) {
	var all []planted
	for _, p := range covered {
		file := strings.TrimPrefix(p.FileName, "lieudit/")
		if strings.HasPrefix(file, outsidePackage) {
			continue
		}
		text, err := os.ReadFile(filepath.Join(tree, file))
		if err != nil {
			return nil, err
		}
		found, err := findMutations(file, text, p)
		if err != nil {
			return nil, err
		}
		all = append(all, found...)
	}
	random := rand.New(rand.NewPCG(seed, 3))
	random.Shuffle(len(all), func(i, k int) { all[i], all[k] = all[k], all[i] })
	return all[:min(number, len(all))], nil
}

// findMutations lists the mutations of a file: a condition negated, a call dropped, two statements swapped.
func findMutations(file string, text []byte, p *cover.Profile) (all []planted, err error) {
	files := token.NewFileSet()
	parsed, err := parser.ParseFile(files, file, text, 0)
	if err != nil {
		return nil, err
	}
	at := func(n ast.Node) string {
		return string(text[files.Position(n.Pos()).Offset:files.Position(n.End()).Offset])
	}
	add := func(kind string, n ast.Node, old, changed string) {
		line := files.Position(n.Pos()).Line
		if isCovered(p, line) {
			whole := string(text)
			offset := files.Position(n.Pos()).Offset
			all = append(all, planted{fmt.Sprintf("%s:%d %s", file, line, kind),
				[]edit{{file, whole, whole[:offset] + changed + whole[offset+len(old):]}}})
		}
	}
	ast.Inspect(parsed, func(n ast.Node) bool {
		switch s := n.(type) {
		case *ast.IfStmt:
			add("negated: "+strconv.Quote(at(s.Cond)), s.Cond, at(s.Cond), "!("+at(s.Cond)+")")
		case *ast.BlockStmt:
			for i, one := range s.List {
				if call, ok := one.(*ast.ExprStmt); ok {
					add("dropped: "+strconv.Quote(at(call)), call, at(call), "")
				}
				if i > 0 && isSimple(one) && isSimple(s.List[i-1]) {
					before := s.List[i-1]
					between := string(text[files.Position(before.End()).Offset:files.Position(one.Pos()).Offset])
					add("swapped: "+strconv.Quote(at(before))+" and "+strconv.Quote(at(one)), before, at(before)+between+at(one), at(one)+between+at(before))
				}
			}
		}
		return true
	})
	return all, nil
}

// isSimple reports whether a statement can usually change places with its neighbour and still compile.
func isSimple(s ast.Stmt) bool {
	switch s := s.(type) {
	case *ast.ExprStmt, *ast.IncDecStmt, *ast.DeferStmt:
		return true
	case *ast.AssignStmt:
		return s.Tok != token.DEFINE
	}
	return false
}

// isCovered reports whether a test runs a line.
func isCovered(p *cover.Profile, line int) bool {
	return slices.ContainsFunc(p.Blocks, func(b cover.ProfileBlock) bool { return b.Count > 0 && b.StartLine <= line && line <= b.EndLine })
}
