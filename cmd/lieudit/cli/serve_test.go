package cli_test

import (
	"bytes"
	"context"
	"encoding/base64"
	"io"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"lieudit/eventstore/dirlock"
	"lieudit/eventstore/vault"
	"lieudit/schemas/deadlinetest"
)

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

// TestRewrapTakesKeysFromFilesOrTheEnvironment, on the vault of a data folder that no service holds.
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
