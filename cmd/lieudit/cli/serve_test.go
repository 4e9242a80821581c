package cli_test

import (
	"bytes"
	"context"
	"encoding/base64"
	"errors"
	"io"
	"net/netip"
	"net/url"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	"lieudit/cmd/lieudit/service"
	"lieudit/eventstore/deadlinetest"
	"lieudit/eventstore/disk/dirlock"
	"lieudit/eventstore/vault"
	"lieudit/queries/route"
	"lieudit/schemas/token"
)

func TestServeTakesFlagsBeforeVariablesBeforeDefaults(t *testing.T) {
	t.Parallel()
	usual := service.Config{
		Data: "./lieudit-data", Listen: "127.0.0.1:8080", AreaListen: "127.0.0.1:8081", OpsListen: "127.0.0.1:8082",
		AddressIndex: service.OwnIndex, PeriodGrace: time.Hour, UsageShards: 1, Demo: true, TokenPrefixes: token.DefaultPrefixes, Drain: 5 * time.Second,
		MaxConnections: 8192, BodyBudget: 256 << 20, AnswerBudget: 256 << 20, Router: service.RouterSetting{Engine: service.OwnRouter},
	}
	variables := map[string]string{
		"LIEUDIT_DATA": "/d", "LIEUDIT_LISTEN": ":1", "LIEUDIT_AREA_LISTEN": ":2", "LIEUDIT_OPS_LISTEN": ":3",
		"LIEUDIT_EVENTSTORE": "esdb://a", "LIEUDIT_POSTGRES": "postgres://b", "LIEUDIT_NO_DEMO": "true",
		"LIEUDIT_SECRET_PREFIX": "s_", "LIEUDIT_PUBLISHABLE_PREFIX": "p_", "LIEUDIT_AREA_PREFIX": "a_", "LIEUDIT_DRAIN": "1m",
		"LIEUDIT_GRACE": "2h", "LIEUDIT_USAGE_SHARDS": "8", "LIEUDIT_MEILISEARCH": "http://c", "LIEUDIT_MEILISEARCH_KEY": "k", "LIEUDIT_ADDRESS_INDEX": "Meilisearch", "LIEUDIT_NO_THROTTLE": "true", "LIEUDIT_ACCEPT_LOST_KEYS": "true", "LIEUDIT_COUNT_TO_THE_LETTER": "true",
		"LIEUDIT_CONNECTIONS": "99", "LIEUDIT_BODY_BUDGET": "512", "LIEUDIT_ACCOUNT_BODY_BUDGET": "64", "LIEUDIT_ANSWER_BUDGET": "128", "LIEUDIT_ACCOUNT_ANSWER_BUDGET": "32",
		"LIEUDIT_ROUTER": "osrm:car=http://r", "LIEUDIT_TRUSTED_PROXIES": "10.0.0.0/8, ::1", "LIEUDIT_OPS_HOSTS": "lieudit-a, lieudit-b:8082", "LIEUDIT_AREA_URL": "https://espace.exemple.fr/",
	}
	set := service.Config{
		Data: "/d", Listen: ":1", AreaListen: ":2", OpsListen: ":3", OpsHosts: []string{"lieudit-a", "lieudit-b:8082"}, AreaURL: &url.URL{Scheme: "https", Host: "espace.exemple.fr"}, EventStore: "esdb://a", Postgres: "postgres://b",
		Meilisearch: "http://k@c", AddressIndex: service.MeilisearchIndex, PeriodGrace: 2 * time.Hour, UsageShards: 8, CountToTheLetter: true, Unthrottled: true, AcceptLostKeys: true, TokenPrefixes: token.Prefixes{Secret: "s_", Publishable: "p_", Area: "a_"}, Drain: time.Minute,
		MaxConnections: 99, BodyBudget: 512 << 20, AccountBodyBudget: 64 << 20, AnswerBudget: 128 << 20, AccountAnswerBudget: 32 << 20,
		TrustedProxies: []netip.Prefix{netip.MustParsePrefix("10.0.0.0/8"), netip.MustParsePrefix("::1/128")},
		Router:         service.RouterSetting{Engine: service.OSRMRouter, Servers: map[route.Mode]string{route.Car: "http://r"}},
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
			if diff := cmp.Diff(c.want, got, cmpopts.IgnoreFields(service.Config{}, "Log", "Out", "Now"), cmpopts.EquateComparable(netip.Prefix{})); diff != "" {
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
		{args: "--drain=-1s", want: 2, complaint: "--drain"},
		{args: "--meilisearch 127.0.0.1:7700", want: 2, complaint: "http://KEY@HOST:PORT"},
		{args: "--address-index meilisearch", want: 2, complaint: "needs --meilisearch"},
		{args: "--address-index meilisearch --meilisearch 127.0.0.1:7700", want: 2, complaint: "http://KEY@HOST:PORT"},
		{args: "--address-index solr", want: 2, complaint: "own, meilisearch"},
		{args: "--router google", want: 2, complaint: "--router (LIEUDIT_ROUTER): it is own, osrm:car=URL"},
		{args: "--trusted-proxies proxy", want: 2, complaint: "--trusted-proxies (LIEUDIT_TRUSTED_PROXIES): \"proxy\" is neither"},
		{args: "--ops-hosts http://lieudit-a", want: 2, complaint: "--ops-hosts (LIEUDIT_OPS_HOSTS): \"http://lieudit-a\" is not a host name"},
		{args: "--area-url https://exemple.fr/espace", want: 2, complaint: "--area-url (LIEUDIT_AREA_URL): \"https://exemple.fr/espace\" is not of the form"},
		{args: "--area-url espace.exemple.fr", want: 2, complaint: "--area-url"},
		{args: "--area-prefix ld_se_", want: 2, complaint: "sessions"},
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

func TestNodeServesUntilItIsStopped(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	ctx, stop := context.WithTimeout(t.Context(), deadlinetest.Scale(deadlinetest.DefaultLimit))
	defer stop()
	out, outWriter := io.Pipe()
	var stderr bytes.Buffer
	p := newTestProgram(outWriter, &stderr, nil)
	ended := make(chan int, 1)
	go func() {
		ended <- p.Run(ctx, []string{"lieudit", "node", "--data", filepath.Join(dir, "log"), "--listen", "127.0.0.1:0"})
		outWriter.Close()
	}()
	line := make([]byte, 4096)
	n, _ := out.Read(line)
	if got := string(line[:n]); !strings.Contains(got, "esdb://127.0.0.1:") {
		t.Fatalf("it said %q\n%s", got, stderr.String())
	}
	code, _, second := runCommand(t, nil, "lieudit node --listen 127.0.0.1:0 --data "+filepath.Join(dir, "log"))
	if code != 1 || !strings.Contains(second, "process") {
		t.Errorf("a second node on the folder: exit %d, %q", code, second)
	}
	stop()
	if code := <-ended; code != 0 {
		t.Errorf("exit %d after being stopped: %s", code, stderr.String())
	}
}

func TestNodePrintsAnAddressThatServeTakes(t *testing.T) {
	t.Parallel()
	socket, data := filepath.Join(t.TempDir(), "s"), t.TempDir()
	ctx, stop := context.WithTimeout(t.Context(), deadlinetest.Scale(deadlinetest.DefaultLimit))
	defer stop()
	out, outWriter := io.Pipe()
	ended := make(chan int, 1)
	go func() {
		p := newTestProgram(outWriter, io.Discard, nil)
		ended <- p.Run(ctx, []string{"lieudit", "node", "--data", data, "--listen", "unix:" + socket})
		outWriter.Close()
	}()
	line := make([]byte, 4096)
	n, _ := out.Read(line)
	if got, want := string(line[:n]), "esdb+unix://"+socket+"."; !strings.Contains(got, want) {
		t.Errorf("it said %q, want %q in it", got, want)
	}
	stop()
	<-ended
}

// TestRewrapTakesKeysFromFilesOrTheEnvironment rewraps the vault of a data folder that no service holds.
func TestRewrapTakesKeysFromFilesOrTheEnvironment(t *testing.T) {
	t.Parallel()
	data := t.TempDir()
	one, two := bytes.Repeat([]byte{1}, 32), bytes.Repeat([]byte{2}, 32)
	inFile := filepath.Join(data, "new-key")
	writeFile(t, inFile, base64.StdEncoding.EncodeToString(one)+"\n")
	path := filepath.Join(data, "vault.db")
	want := readDataKey(t, path, nil, true)
	for _, step := range []struct {
		args string
		env  map[string]string
		to   []byte
	}{
		{"--new-vault-key-file " + inFile, nil, one},
		{"--vault-key-file " + inFile, map[string]string{"LIEUDIT_NEW_VAULT_KEY": base64.StdEncoding.EncodeToString(two)}, two},
	} {
		code, out, stderr := runCommand(t, step.env, "lieudit vault rewrap --data "+data+" "+step.args)
		if code != 0 || !strings.Contains(out, "1 keys are wrapped") {
			t.Fatalf("%s: exit %d, %q, %q", step.args, code, out, stderr)
		}
		if got := readDataKey(t, path, step.to, false); !bytes.Equal(got, want) {
			t.Errorf("%s: the key is %x now, want %x", step.args, got, want)
		}
	}
	held, err := dirlock.Acquire(data, time.Now())
	if err != nil {
		t.Fatal(err)
	}
	defer held.Close()
	if code, _, stderr := runCommand(t, nil, "lieudit vault rewrap --data "+data+" --new-vault-key-file "+inFile); code != 1 || !strings.Contains(stderr, "is held by process") {
		t.Errorf("while a service runs: exit %d, %q", code, stderr)
	}
}

func readDataKey(t *testing.T, path string, master []byte, create bool) []byte {
	t.Helper()
	v, err := vault.New(path, master, time.Now)
	if err != nil {
		t.Fatal(err)
	}
	defer v.Close()
	key, err := v.Key(t.Context(), "a", create)
	if err != nil {
		t.Fatal(err)
	}
	return key
}
