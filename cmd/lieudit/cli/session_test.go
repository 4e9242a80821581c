package cli_test

import (
	"bytes"
	"context"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// runCommand runs a command line with environment variables and returns its exit code and output.
func runCommand(t *testing.T, env map[string]string, line string) (code int, out, stderr string) {
	t.Helper()
	var o, e bytes.Buffer
	p := newTestProgram(&o, &e, env)
	p.In = strings.NewReader("from-stdin\n")
	return p.Run(t.Context(), splitWords(t, line)), o.String(), e.String()
}

func TestTokenComesFromFileEnvironmentOrDataFolder(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	named := filepath.Join(dir, "named")
	writeFile(t, named, "from-file\n")
	writeFile(t, filepath.Join(dir, "operator-token"), " from-folder \n")
	writeFile(t, filepath.Join(dir, "empty"), "\n")
	for _, c := range []struct {
		name string
		env  map[string]string
		args string
		want string
	}{
		{"the data folder's operator token", map[string]string{"LIEUDIT_DATA": dir}, "", "Bearer from-folder"},
		{"the environment before the data folder", map[string]string{"LIEUDIT_DATA": dir, "LIEUDIT_TOKEN": "from-env"}, "", "Bearer from-env"},
		{"a file that was asked for before all", map[string]string{"LIEUDIT_DATA": dir, "LIEUDIT_TOKEN": "from-env"}, "--token-file " + named, "Bearer from-file"},
		{"a file named by the environment", map[string]string{"LIEUDIT_TOKEN_FILE": named}, "", "Bearer from-file"},
		{"standard input", nil, "--token-file -", "Bearer from-stdin"},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			var got string
			server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
				got = r.Header.Get("Authorization")
				w.Write([]byte(`{"results":[]}`))
			}))
			defer server.Close()
			code, _, stderr := runCommand(t, c.env, "lieudit account list --area "+server.URL+" "+c.args)
			if code != 0 || got != c.want {
				t.Errorf("exit %d, token %q, want %q\n%s", code, got, c.want, stderr)
			}
		})
	}
}

func TestAMissingTokenSaysWhatToDo(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	writeFile(t, filepath.Join(dir, "empty"), "\n")
	for file, want := range map[string]string{
		"missing": "there is no token in ",
		"empty":   "is empty",
		"":        "reading the token",
	} {
		code, out, stderr := runCommand(t, nil, "lieudit account list --token-file "+filepath.Join(dir, file))
		if code != 1 || out != "" || !strings.Contains(stderr, want) {
			t.Errorf("%q: exit %d, %q, want 1 and %q", file, code, stderr, want)
		}
	}
}

func TestNoAnswerSaysWhatToDo(t *testing.T) {
	t.Parallel()
	ln, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	address := "http://" + ln.Addr().String()
	ln.Close()
	code, _, stderr := runCommand(t, map[string]string{"LIEUDIT_TOKEN": "very-secret", "LIEUDIT_AREA": address}, "lieudit account list")
	if code != 1 || !strings.Contains(stderr, "lieudit serve") || !strings.Contains(stderr, address) {
		t.Errorf("exit %d, %q", code, stderr)
	}
	if strings.Contains(stderr, "very-secret") {
		t.Errorf("the token is in the error: %q", stderr)
	}
}

func TestRedirectsDoNotCarryTheTokenOn(t *testing.T) {
	t.Parallel()
	elsewhere := httptest.NewServer(http.HandlerFunc(func(http.ResponseWriter, *http.Request) {
		t.Error("the redirect was followed")
	}))
	defer elsewhere.Close()
	server := httptest.NewServer(http.RedirectHandler(elsewhere.URL, http.StatusTemporaryRedirect))
	defer server.Close()
	code, _, _ := runCommand(t, map[string]string{"LIEUDIT_TOKEN": "x", "LIEUDIT_AREA": server.URL}, "lieudit account list")
	if code != 1 {
		t.Errorf("exit %d, want 1", code)
	}
}

func TestInterruptedCommandFails(t *testing.T) {
	t.Parallel()
	ctx, cancel := context.WithCancel(t.Context())
	server := httptest.NewServer(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
		cancel()
		<-r.Context().Done()
	}))
	defer server.Close()
	var out, stderr bytes.Buffer
	p := newTestProgram(&out, &stderr, map[string]string{"LIEUDIT_TOKEN": "x", "LIEUDIT_AREA": server.URL})
	if code := p.Run(ctx, []string{"lieudit", "account", "list"}); code != 1 || stderr.String() != "lieudit: interrupted\n" {
		t.Errorf("exit %d, %q", code, stderr.String())
	}
}

func writeFile(t *testing.T, file, text string) {
	t.Helper()
	if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
}
