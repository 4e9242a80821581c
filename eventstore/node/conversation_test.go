package node_test

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"reflect"
	"testing"
	"time"

	"lieudit/eventstore/leveltest"
	"lieudit/eventstore/node"
)

// knownDifferences are the steps that a node answers in another way than the server of the recording, and why.
var knownDifferences = map[string]string{
	"append 1.2 MB":       "the most that one append holds is ours, 983,040 bytes: every log of this program agrees on it",
	"append 1.2 MB in 12": "the same",
	"persistent create":   "there are no persistent subscriptions: nothing here reads by them",
}

// TestTheOfficialNodeClientIsAnsweredAsByARealServer holds a conversation of 95 steps with a node, by the official client
// for Node.js, and compares it with what a real EventStoreDB answered.
func TestTheOfficialNodeClientIsAnsweredAsByARealServer(t *testing.T) {
	t.Parallel()
	leveltest.Need(t, leveltest.Whole, "") // it installs and runs Node.js
	script := officialFile(t, "conversation.mjs")
	recorded := parseSteps(t, officialFile(t, "answers.jsonl"))
	dir := installNodeClient(t)
	if err := os.WriteFile(filepath.Join(dir, "conversation.mjs"), script, 0o600); err != nil {
		t.Fatal(err)
	}
	s := serveLog(t, open(t, t.TempDir()), "127.0.0.1:0", node.Options{})
	t.Cleanup(s.stop)
	answered := parseSteps(t, runCommand(t, dir, "node", "conversation.mjs", "esdb://"+s.addr+"?tls=false", "seed"))
	if len(answered) != len(recorded) || len(recorded) != 95 {
		t.Fatalf("%d steps answered, %d recorded, want 95 of each", len(answered), len(recorded))
	}
	for i, want := range recorded {
		compareStep(t, answered[i], want)
	}
}

// step is one line of a conversation.
type step map[string]any

func compareStep(t *testing.T, got, want step) {
	t.Helper()
	op := fmt.Sprint(want["op"])
	why, known := knownDifferences[op]
	switch same := reflect.DeepEqual(got, want); {
	case same && known:
		t.Errorf("%s: answered as recorded, which is no longer to be excused (%s)", op, why)
	case !same && !known:
		t.Errorf("%s:\n got  %v\n want %v", op, got, want)
	}
}

func parseSteps(t *testing.T, lines []byte) []step {
	t.Helper()
	var all []step
	for scan := bufio.NewScanner(bytes.NewReader(lines)); scan.Scan(); {
		var s step
		if err := json.Unmarshal(scan.Bytes(), &s); err != nil {
			t.Fatalf("%v in %s", err, scan.Text())
		}
		all = append(all, s)
	}
	return all
}

// officialFile reads a file of the recording, which is next to the project or in LIEUDIT_TEST_DATA.
func officialFile(t *testing.T, name string) []byte {
	t.Helper()
	dir := os.Getenv("LIEUDIT_TEST_DATA")
	if dir == "" {
		dir = filepath.Join("..", "..", "..", "shared", "data")
	}
	data, err := os.ReadFile(filepath.Join(dir, "eventstoredb", name))
	if err != nil {
		leveltest.Need(t, leveltest.Whole, leveltest.Missing("no recording: name the folder of the official data in LIEUDIT_TEST_DATA", err))
	}
	return data
}

// installNodeClient puts the official client, by its lock file, into a folder of its own.
func installNodeClient(t *testing.T) string {
	t.Helper()
	for _, program := range []string{"node", "npm"} {
		if _, err := exec.LookPath(program); err != nil {
			leveltest.Need(t, leveltest.Whole, leveltest.Missing("install Node.js (apt-get install nodejs npm)", err))
		}
	}
	dir := t.TempDir()
	if err := os.CopyFS(dir, os.DirFS(filepath.Join("testdata", "conversation"))); err != nil {
		t.Fatal(err)
	}
	install := newCommand(t, dir, "npm", "ci", "--ignore-scripts", "--no-audit", "--no-fund", "--prefer-offline", "--loglevel=error")
	if said, err := install.CombinedOutput(); err != nil {
		leveltest.Need(t, leveltest.Whole, leveltest.Missing("the official Node.js client cannot be installed", fmt.Errorf("%w: %s", err, said)))
	}
	return dir
}

func runCommand(t *testing.T, dir string, words ...string) []byte {
	t.Helper()
	cmd := newCommand(t, dir, words...)
	var complaints bytes.Buffer
	cmd.Stderr = &complaints
	said, err := cmd.Output()
	if err != nil {
		t.Fatalf("%v: %v: %s", words, err, complaints.String())
	}
	return said
}

func newCommand(t *testing.T, dir string, words ...string) *exec.Cmd {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), 3*time.Minute)
	t.Cleanup(cancel)
	cmd := exec.CommandContext(ctx, words[0], words[1:]...)
	cmd.Dir, cmd.WaitDelay = dir, 10*time.Second
	return cmd
}
