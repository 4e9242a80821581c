package simulate

import (
	"encoding/json"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"testing"

	"golang.org/x/tools/cover"
)

// tree is the root of the module.
const tree = "../../.."

// Otherwise only a run of --planted would notice that a fault no longer fits or cannot be built.
func TestPlantedFaultsFitTheTree(t *testing.T) {
	t.Parallel()
	all, err := allPlanted()
	if err != nil {
		t.Fatal(err)
	}
	for _, p := range all {
		t.Run(p.name, func(t *testing.T) {
			t.Parallel()
			folder := t.TempDir()
			replaced := map[string]string{} // by the path of the original
			for _, e := range p.edits {
				original, err := filepath.Abs(filepath.Join(tree, e.file))
				if err != nil {
					t.Fatal(err)
				}
				if replaced[original] == "" {
					replaced[original] = filepath.Join(folder, e.file)
					copyFile(t, replaced[original], original)
				}
				if e.old == e.new {
					t.Errorf("an edit of %s changes nothing", e.file)
				}
			}
			if err := plant(folder, p.edits); err != nil {
				t.Fatal(err)
			}
			buildReplaced(t, replaced)
		})
	}
}

// copyFile copies a file into a folder that it makes.
func copyFile(t *testing.T, to, from string) {
	t.Helper()
	text, err := os.ReadFile(from)
	if err == nil {
		err = os.MkdirAll(filepath.Dir(to), 0o700)
	}
	if err == nil {
		err = os.WriteFile(to, text, 0o600)
	}
	if err != nil {
		t.Fatal(err)
	}
}

// buildReplaced builds the packages of some files with other files in their places.
func buildReplaced(t *testing.T, replaced map[string]string) {
	t.Helper()
	overlay, err := json.Marshal(map[string]any{"Replace": replaced})
	if err != nil {
		t.Fatal(err)
	}
	file := filepath.Join(t.TempDir(), "overlay.json")
	if err := os.WriteFile(file, overlay, 0o600); err != nil {
		t.Fatal(err)
	}
	args := []string{"build", "-overlay", file}
	for original := range replaced {
		if folder := filepath.Dir(original); !slices.Contains(args, folder) {
			args = append(args, folder)
		}
	}
	cmd := exec.CommandContext(t.Context(), "go", args...)
	cmd.Env = append(os.Environ(), "CGO_ENABLED=0") // as the program is built
	if out, err := cmd.CombinedOutput(); err != nil {
		t.Errorf("%v\n%s", err, out)
	}
}

func TestAPatchIsReadAsEditsThatFindTheirPlace(t *testing.T) {
	t.Parallel()
	patch := "diff --git a/x/a.go b/x/a.go\nindex 1..2 100644\n--- a/x/a.go\n+++ b/x/a.go\n@@ -3,3 +3,3 @@ func f() {\n one\n-two\n+2\n\n" +
		"@@ -9,2 +9,1 @@\n--- nine\n ten\ndiff --git a/b.go b/b.go\n--- a/b.go\n+++ b/b.go\n@@ -1 +1,2 @@\n one\n+++ two\n"
	got, err := parsePatch(patch)
	if err != nil {
		t.Fatal(err)
	}
	want := []edit{{"x/a.go", "one\ntwo\n\n", "one\n2\n\n"}, {"x/a.go", "-- nine\nten\n", "ten\n"}, {"b.go", "one\n", "one\n++ two\n"}}
	if !slices.Equal(got, want) {
		t.Errorf("got %q, want %q", got, want)
	}
	for _, bad := range []string{"", "+++ b/x.go\n", "+++ b/x.go\n@@ -1 +1 @@\nno sign\n"} {
		if got, err := parsePatch(bad); err == nil {
			t.Errorf("%q is read as %q", bad, got)
		}
	}
}

func TestAScriptIsCutToWhatStillFails(t *testing.T) {
	t.Parallel()
	all := make([]int, 100)
	for i := range all {
		all[i] = i
	}
	for _, want := range [][]int{{17}, {3, 99}, {0, 50, 51}} {
		plays := 0
		got := cut(all, func(left []int) bool {
			plays++
			return !slices.ContainsFunc(want, func(n int) bool { return !slices.Contains(left, n) })
		})
		if !slices.Equal(got, want) {
			t.Errorf("cut to %v, want %v", got, want)
		}
		if plays > 150 {
			t.Errorf("%d plays for %v", plays, want)
		}
	}
}

func TestAnOutputIsSummedUpInALine(t *testing.T) {
	t.Parallel()
	for _, c := range []struct{ name, out, want string }{
		{"a rule", "--- FAIL: TestHistory (1.2s)\n    history_test.go:36: a rule: what broke it\n", "a rule: what broke it"},
		{"a stuck goroutine", "panic: test timed out after 1m0s\n\ngoroutine 7 [select (durable), synctest bubble 1]:\nlieudit/a.f()\n\n" +
			"goroutine 8 [sync.Mutex.Lock, synctest bubble 1]:\nsync.(*Mutex).Lock()\nlieudit/projections.g()\n",
			"the history does not end: goroutine 8 [sync.Mutex.Lock, synctest bubble 1]: lieudit/projections.g()"},
		{"a panic", "panic: index out of range\n\ngoroutine 7 [running]:\nlieudit/cmd/bench/simulation.f()\nlieudit/commands.g()\n", "panic: index out of range lieudit/commands.g()"},
		{"a race", "==================\nWARNING: DATA RACE\nRead at 0x1 by goroutine 8:\n  sync.f()\n  lieudit/commands.g()\n", "WARNING: DATA RACE lieudit/commands.g()"},
	} {
		if got := summarize(c.out); got != c.want {
			t.Errorf("%s: %q, want %q", c.name, got, c.want)
		}
	}
}

func TestTheReportOfARaceIsCutOutOfAnOutput(t *testing.T) {
	t.Parallel()
	const report = "WARNING: DATA RACE\nRead at 0x1 by goroutine 8:\n  lieudit/commands.g()\n"
	const line = "==================\n"
	for out, want := range map[string]string{
		"":                                      "",
		"--- FAIL: TestHistory\n":               "",
		"log\n" + line + report + line + "more": report,
		line + report + line + line + "WARNING: DATA RACE\nWrite\n" + line: report,
		line + report: report, // cut off
	} {
		if got := raceReport(out); got != want {
			t.Errorf("%q: %q, want %q", out, got, want)
		}
	}
}

func TestMutationsAreDrawnFromWhatTestsRun(t *testing.T) {
	t.Parallel()
	text := []byte("package a\n\nfunc f(n int) int {\n\tif n > 1 {\n\t\tn++\n\t\tn--\n\t}\n\tprintln(n)\n\treturn n\n}\n")
	all, err := findMutations("a.go", text, coverLines(1, 20))
	if err != nil {
		t.Fatal(err)
	}
	var got []string
	for _, m := range all {
		got = append(got, m.name)
	}
	want := []string{`a.go:8 dropped: "println(n)"`, `a.go:4 negated: "n > 1"`, `a.go:5 swapped: "n++" and "n--"`}
	if !slices.Equal(got, want) {
		t.Errorf("got %q, want %q", got, want)
	}
	if none, _ := findMutations("a.go", text, coverLines(11, 20)); len(none) > 0 {
		t.Errorf("%d mutations of lines that no test runs", len(none))
	}
}

// coverLines is a profile in which tests run some lines.
func coverLines(first, last int) *cover.Profile {
	return &cover.Profile{Blocks: []cover.ProfileBlock{{StartLine: first, EndLine: last, Count: 1}}}
}
