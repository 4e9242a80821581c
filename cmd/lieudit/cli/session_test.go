package cli_test

import (
	"bytes"
	"context"
	"encoding/base64"
	"errors"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	"lieudit/cmd/lieudit/service"
	"lieudit/schemas/token"
)

// runCommand runs a command in an environment and returns how it ended and what it said.
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

func TestTokenThatIsNotThereSaysWhatToDo(t *testing.T) {
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

func TestServeTakesFlagsBeforeVariablesBeforeDefaults(t *testing.T) {
	t.Parallel()
	usual := service.Config{
		Data: "./lieudit-data", Listen: "127.0.0.1:8080", AreaListen: "127.0.0.1:8081", OpsListen: "127.0.0.1:8082",
		AddressIndex: service.OwnIndex, PeriodGrace: time.Hour, Demo: true, TokenPrefixes: token.DefaultPrefixes, DrainTimeout: 10 * time.Second,
		MaxConnections: 8192, BodyBudget: 256 << 20,
	}
	variables := map[string]string{
		"LIEUDIT_DATA": "/d", "LIEUDIT_LISTEN": ":1", "LIEUDIT_AREA_LISTEN": ":2", "LIEUDIT_OPS_LISTEN": ":3",
		"LIEUDIT_EVENTSTORE": "esdb://a", "LIEUDIT_POSTGRES": "postgres://b", "LIEUDIT_NO_DEMO": "true",
		"LIEUDIT_SECRET_PREFIX": "s_", "LIEUDIT_PUBLISHABLE_PREFIX": "p_", "LIEUDIT_AREA_PREFIX": "a_", "LIEUDIT_DRAIN": "1m",
		"LIEUDIT_GRACE": "2h", "LIEUDIT_MEILISEARCH": "http://c", "LIEUDIT_MEILISEARCH_KEY": "k", "LIEUDIT_ADDRESS_INDEX": "meilisearch", "LIEUDIT_NO_THROTTLE": "true", "LIEUDIT_ACCEPT_LOST_KEYS": "true", "LIEUDIT_COUNT_TO_THE_LETTER": "true",
		"LIEUDIT_CONNECTIONS": "99", "LIEUDIT_BODY_BUDGET": "512", "LIEUDIT_ACCOUNT_BODY_BUDGET": "64",
	}
	set := service.Config{
		Data: "/d", Listen: ":1", AreaListen: ":2", OpsListen: ":3", EventStore: "esdb://a", Postgres: "postgres://b",
		Meilisearch: "http://k@c", AddressIndex: service.MeilisearchIndex, PeriodGrace: 2 * time.Hour, CountToTheLetter: true, Unthrottled: true, AcceptLostKeys: true, TokenPrefixes: token.Prefixes{Secret: "s_", Publishable: "p_", Area: "a_"}, DrainTimeout: time.Minute,
		MaxConnections: 99, BodyBudget: 512 << 20, AccountBodyBudget: 64 << 20,
	}
	overridden := set
	overridden.Data, overridden.Listen = "/e", ":9"
	for _, c := range []struct {
		name, args string
		env        map[string]string
		want       service.Config
	}{
		{"defaults", "", nil, usual},
		{"empty variables are none", "", map[string]string{"LIEUDIT_DATA": "", "LIEUDIT_EVENTSTORE": "", "LIEUDIT_DRAIN": ""}, usual},
		{"variables", "", variables, set},
		{"flags", "--data /e --listen :9", variables, overridden},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			var out, stderr bytes.Buffer
			var got service.Config
			p := newTestProgram(&out, &stderr, c.env)
			p.Serve = func(_ context.Context, sc service.Config) error { got = sc; return nil }
			if code := p.Run(t.Context(), splitWords(t, "lieudit serve "+c.args)); code != 0 {
				t.Fatalf("exit %d: %s", code, stderr.String())
			}
			if diff := cmp.Diff(c.want, got, cmpopts.IgnoreFields(service.Config{}, "Log", "Out", "Now")); diff != "" {
				t.Errorf("config (-want +got):\n%s", diff)
			}
		})
	}
}

func TestServeTakesTheVaultKeyFromItsFileOrTheEnvironment(t *testing.T) {
	t.Parallel()
	inFile, inEnv := bytes.Repeat([]byte{1}, 32), bytes.Repeat([]byte{2}, 32)
	file := filepath.Join(t.TempDir(), "key")
	writeFile(t, file, base64.StdEncoding.EncodeToString(inFile)+"\n")
	env := map[string]string{"LIEUDIT_VAULT_KEY": base64.StdEncoding.EncodeToString(inEnv)}
	for _, c := range []struct {
		args string
		env  map[string]string
		want []byte
		code int
	}{
		{"", nil, nil, 0},
		{"", env, inEnv, 0},
		{"--vault-key-file " + file, env, inFile, 0},
		{"--vault-key-file " + file + ".missing", env, nil, 1},
		{"", map[string]string{"LIEUDIT_VAULT_KEY": "too short"}, nil, 1},
	} {
		var out, stderr bytes.Buffer
		var got []byte
		p := newTestProgram(&out, &stderr, c.env)
		p.Serve = func(_ context.Context, sc service.Config) error { got = sc.VaultKey; return nil }
		if code := p.Run(t.Context(), splitWords(t, "lieudit serve "+c.args)); code != c.code || !bytes.Equal(got, c.want) {
			t.Errorf("serve %s: exit %d, key %x; want %d, %x\n%s", c.args, code, got, c.code, c.want, stderr.String())
		}
		if strings.Contains(stderr.String(), "too short") {
			t.Errorf("the key is in the error: %s", stderr.String())
		}
	}
}

func TestServeExitCodes(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		args, env, complaint string
		err                  error
		want                 int
	}{
		{args: "", want: 0},
		{args: "", err: errors.New("the folder is held by process 7"), want: 1, complaint: "held by process 7"},
		{args: "--drain soon", want: 2, complaint: "--drain"},
		{args: "--meilisearch 127.0.0.1:7700", want: 2, complaint: "http://KEY@HOST:PORT"},
		{args: "--address-index meilisearch", want: 2, complaint: "needs --meilisearch"},
		{args: "--address-index meilisearch --meilisearch 127.0.0.1:7700", want: 2, complaint: "http://KEY@HOST:PORT"},
		{args: "--address-index solr", want: 2, complaint: "own, meilisearch"},
		{args: "--log xml", want: 2, complaint: "text, json"},
		{args: "--secret-prefix ld_", want: 2, complaint: "prefix"},
		{args: "", env: "maybe", want: 2, complaint: "LIEUDIT_NO_DEMO"},
		{args: "here", want: 2, complaint: "unexpected argument"},
	} {
		var out, stderr bytes.Buffer
		p := newTestProgram(&out, &stderr, map[string]string{"LIEUDIT_NO_DEMO": c.env})
		p.Serve = func(context.Context, service.Config) error { return c.err }
		got := p.Run(t.Context(), splitWords(t, "lieudit serve "+c.args))
		if got != c.want || !strings.Contains(stderr.String(), c.complaint) {
			t.Errorf("serve %s: exit %d, want %d; %q, want %q", c.args, got, c.want, stderr.String(), c.complaint)
		}
	}
}

func writeFile(t *testing.T, file, text string) {
	t.Helper()
	if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
}
