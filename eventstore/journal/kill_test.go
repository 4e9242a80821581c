package journal_test

import (
	"bufio"
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"os/exec"
	"strings"
	"testing"

	"lieudit/eventstore"
	"lieudit/eventstore/journal"
)

func TestKillTakesNothingAcknowledged(t *testing.T) {
	t.Parallel()
	dir, rng := t.TempDir(), rand.New(rand.NewPCG(1, 1))
	acknowledged, kept := map[string]string{}, 0
	for kill := range 50 {
		acks := killAfter(t, dir, 1+rng.IntN(40))
		for id, pos := range acks {
			acknowledged[id] = pos
		}
		n, err := checkSurvived(t, dir, acknowledged)
		if err != nil {
			t.Fatalf("after kill %d: %v", kill, err)
		}
		if n < kept {
			t.Fatalf("after kill %d the log holds %d events, it had held %d", kill, n, kept)
		}
		kept = n
	}
}

// killAfter runs the child until it has acknowledged n appends and kills it. It returns what it acknowledged.
func killAfter(t *testing.T, dir string, n int) map[string]string {
	t.Helper()
	child := exec.Command(os.Args[0])
	child.Env = append(os.Environ(), envWriteIn+"="+dir)
	out, err := child.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := child.Start(); err != nil {
		t.Fatal(err)
	}
	acks, said := map[string]string{}, ""
	for lines := bufio.NewScanner(out); lines.Scan(); {
		said += lines.Text() + "\n"
		if f := strings.Fields(lines.Text()); len(f) == 3 && f[0] == "ack" {
			acks[f[2]] = f[1]
		}
		if len(acks) == n {
			if err := child.Process.Kill(); err != nil {
				t.Error(err)
			}
		}
	}
	_ = child.Wait() // it was killed: an error is right
	if len(acks) < n {
		t.Fatalf("the child wrote %d appends, want %d: %s", len(acks), n, said)
	}
	return acks
}

// checkSurvived opens the log and counts its events. All acknowledged are there and every append is whole.
func checkSurvived(t *testing.T, dir string, acknowledged map[string]string) (events int, err error) {
	t.Helper()
	j, err := journal.Open(dir, journal.Options{SegmentSize: 64 << 10, Logger: discardLogger()})
	if err != nil {
		return 0, err
	}
	defer func() { err = errors.Join(err, j.Close()) }()
	found, due, of := map[string]string{}, 0, 1
	for s, err := range j.ReadAll(t.Context(), eventstore.Checkpoint{}, nil) {
		if err != nil {
			return events, err
		}
		if s.Kind != eventstore.EventAppeared {
			continue
		}
		var i int
		if _, err := fmt.Sscanf(string(s.Event.Data), "%d of %d", &i, &of); err != nil || i != due {
			return events, fmt.Errorf("event %d of an append at %d, want %d: %w", i, s.Event.Position, due, err)
		}
		due = (i + 1) % of
		events++
		found[s.Event.ID.String()] = fmt.Sprint(s.Event.Position)
	}
	if due != 0 {
		return events, errors.New("the log ends inside an append")
	}
	for id, pos := range acknowledged {
		if found[id] != pos {
			return events, fmt.Errorf("event %s was acknowledged at %s and is at %q", id, pos, found[id])
		}
	}
	return events, nil
}
