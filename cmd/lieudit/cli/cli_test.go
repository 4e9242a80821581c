package cli_test

import (
	"bytes"
	"context"
	"flag"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"golang.org/x/tools/txtar"

	"github.com/google/go-cmp/cmp"

	"lieudit/cmd/lieudit/cli"
	"lieudit/cmd/lieudit/service"
	"lieudit/cmd/terminal"
)

var update = flag.Bool("update", false, "write what the commands do now into testdata")

// TestCommands runs testdata/*.txtar, one file a rule. A file holds the command line, whether people read the output
// (terminal), standard input (stdin), the answers of the service, one line a request, and then the wanted requests, exit
// code and output.
func TestCommands(t *testing.T) {
	t.Parallel()
	files, err := filepath.Glob("testdata/*.txtar")
	if err != nil || len(files) == 0 {
		t.Fatalf("no cases in testdata: %v", err)
	}
	for _, file := range files {
		t.Run(strings.TrimSuffix(filepath.Base(file), ".txtar"), func(t *testing.T) {
			t.Parallel()
			runCase(t, file)
		})
	}
}

// resultSections are the sections that a run fills.
func resultSections() []string { return []string{"requests", "exit", "stdout", "stderr"} }

func runCase(t *testing.T, file string) {
	t.Helper()
	archive, err := txtar.ParseFile(file)
	if err != nil {
		t.Fatal(err)
	}
	sections := map[string]string{}
	for _, f := range archive.Files {
		sections[f.Name] = string(f.Data)
	}
	got := executeCase(t, sections)
	if *update {
		updateCase(t, file, archive, got)
		return
	}
	for _, name := range resultSections() {
		// A section always ends with a line's end, which a question that waits for its answer does not have.
		if diff := cmp.Diff(strings.TrimSuffix(sections[name], "\n"), strings.TrimSuffix(got[name], "\n")); diff != "" {
			t.Errorf("%s (-want +got):\n%s", name, diff)
		}
	}
}

func updateCase(t *testing.T, file string, archive *txtar.Archive, got map[string]string) {
	t.Helper()
	kept := archive.Files[:0]
	for _, f := range archive.Files {
		if _, result := got[f.Name]; !result {
			kept = append(kept, f)
		}
	}
	for _, name := range resultSections() {
		if got[name] != "" {
			kept = append(kept, txtar.File{Name: name, Data: []byte(got[name])})
		}
	}
	archive.Files = kept
	if err := os.WriteFile(file, txtar.Format(archive), 0o644); err != nil {
		t.Fatal(err)
	}
}

// executeCase runs the command of a case against a customer area that gives the case's answers.
func executeCase(t *testing.T, sections map[string]string) map[string]string {
	t.Helper()
	area := &fakeArea{answers: strings.Split(strings.TrimSuffix(sections["answers"], "\n"), "\n")}
	server := httptest.NewServer(area)
	defer server.Close()
	_, terminal := sections["terminal"]
	var out, stderr bytes.Buffer
	p := newTestProgram(&out, &stderr, map[string]string{
		"LIEUDIT_AREA": server.URL, "LIEUDIT_TOKEN": "operator-token", "LIEUDIT_URL": server.URL, "LIEUDIT_OPS": server.URL, "LIEUDIT_KEY": "operator-token",
	})
	p.IsTerminal, p.In = terminal, strings.NewReader(sections["stdin"])
	code := p.Run(t.Context(), splitWords(t, strings.TrimSpace(sections["command"])))
	return map[string]string{
		"requests": area.requestLog(),
		"exit":     strconv.Itoa(code) + "\n",
		"stdout":   out.String(),
		"stderr":   stderr.String(),
	}
}

// newTestProgram is the program with its output in buffers and an environment of its own.
func newTestProgram(out, stderr io.Writer, env map[string]string) cli.Program {
	return cli.Program{
		Terminal: terminal.Terminal{
			Name:      "lieudit",
			In:        strings.NewReader(""),
			Out:       out,
			Err:       stderr,
			LookupEnv: func(k string) (string, bool) { v, ok := env[k]; return v, ok },
			TimeZone:  time.FixedZone("CET", 3600),
		},
		Version: "0.0.0-test",
		Serve:   func(context.Context, service.Config) error { return nil },
	}
}

// fakeArea is a customer area that gives the answers of a case in order; a line is a status and a body.
type fakeArea struct {
	mu       sync.Mutex
	answers  []string
	requests strings.Builder
}

func (f *fakeArea) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	f.mu.Lock()
	defer f.mu.Unlock()
	body, _ := io.ReadAll(r.Body)
	fmt.Fprintln(&f.requests, strings.TrimSpace(fmt.Sprintf("%s %s %s", r.Method, r.URL.RequestURI(), body)))
	if got, want := r.Header.Get("Authorization"), "Bearer operator-token"; got != want {
		fmt.Fprintf(&f.requests, "Authorization: %s\n", got)
	}
	answer := ""
	if len(f.answers) > 0 {
		answer, f.answers = f.answers[0], f.answers[1:]
	}
	status, text, _ := strings.Cut(answer, " ")
	code, err := strconv.Atoi(status)
	if err != nil {
		code, text = http.StatusInternalServerError, `{"detail":"the case has no answer for this request"}`
	}
	w.Header().Set("Content-Type", "application/json")
	w.WriteHeader(code)
	fmt.Fprintln(w, text)
}

func (f *fakeArea) requestLog() string {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.requests.String()
}

// splitWords splits a command line at spaces outside quotes, double or single.
func splitWords(t *testing.T, line string) []string {
	t.Helper()
	var out []string
	var word strings.Builder
	quote, begun := rune(0), false
	for _, r := range line + " " {
		switch {
		case quote != 0 && r == quote:
			quote = 0
		case quote == 0 && (r == '"' || r == '\''):
			quote, begun = r, true
		case quote == 0 && (r == ' ' || r == '\n'):
			if begun {
				out = append(out, word.String())
			}
			word.Reset()
			begun = false
		default:
			word.WriteRune(r)
			begun = true
		}
	}
	if quote != 0 {
		t.Fatalf("unclosed quote in %q", line)
	}
	return out
}
