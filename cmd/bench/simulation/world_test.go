package simulation

import (
	"log/slog"
	"net/http"
	"os"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"lieudit/cmd/bench/simulation/customers"
	"lieudit/cmd/bench/simulation/faults"
)

// newFolder makes a folder, in memory if the machine has one there.
func newFolder(t *testing.T) string {
	t.Helper()
	folder, err := os.MkdirTemp("/dev/shm", "lieudit-simulation-")
	if err != nil {
		return t.TempDir()
	}
	t.Cleanup(func() { os.RemoveAll(folder) })
	return folder
}

func TestInstancesAnswerAsOne(t *testing.T) {
	folder := newFolder(t)
	synctest.Test(t, func(t *testing.T) {
		w, err := NewWorld(folder, time.Date(2026, 1, 5, 8, 0, 0, 0, time.UTC), slog.New(slog.NewTextHandler(t.Output(), nil)))
		if err != nil {
			t.Fatal(err)
		}
		w.Start()
		defer w.Stop()
		time.Sleep(5 * time.Second)
		token, ok := w.OperatorToken()
		if !ok {
			t.Fatal("there is no operator's token")
		}
		header := http.Header{"Authorization": {"Bearer " + token}, "Content-Type": {"application/json"}}
		for round := range 4 {
			for i := range w.nodes {
				a := w.Call(t.Context(), i, customers.Area, customers.Request{Method: "GET", Path: "/customer-area/v1/accounts", Header: header})
				if a.Status != http.StatusOK {
					t.Errorf("round %d, instance %d: %d %s", round, i, a.Status, a.Body)
				}
			}
			if err := w.nodes[round%3].kill(); err != nil {
				t.Error(err)
			}
			w.nodes[round%3].start()
			time.Sleep(12 * time.Second)
		}
	})
}

func TestAReportTellsWhatHappenedToTheInstancesBefore(t *testing.T) {
	folder := newFolder(t)
	synctest.Test(t, func(t *testing.T) {
		w := startWorld(t, folder)
		defer w.Stop()
		w.nodes[1].stop()
		time.Sleep(5 * time.Second)
		w.nodes[1].start()
		time.Sleep(5 * time.Second)
		w.strike(faults.Fault{Kind: faults.LogSilent, Part: faults.CoreLog, Instance: 2, For: 2 * time.Second})
		w.strike(faults.Fault{Kind: faults.WallClockApart, Part: faults.World, Instance: 0, For: time.Second})
		time.Sleep(3 * time.Second)

		w.Report(customers.ClosedStays, "one line\nand a second one")
		got := w.Violations()[0].String()
		for _, want := range []string{
			string(customers.ClosedStays) + `: one line (the last fault struck instance 0; `,
			`instance 0: struck by "wall clock apart" (world) 4.000s before, started without a key ring 21.000s before`,
			`instance 1: started with its key ring 11.000s before, read the snapshot of the key ring 1`,
			`instance 2: struck by "log silent" (core log) 4.`,
		} {
			if !strings.Contains(got, want) {
				t.Errorf("got %s\nwant in it %s", got, want)
			}
		}
		if !strings.HasSuffix(got, ")\nand a second one") {
			t.Errorf("got %q, want what happened before on the first line", got)
		}
	})
}

func TestTheModelLearnsNoTimeOfAClockThatIsFarAhead(t *testing.T) {
	folder := newFolder(t)
	synctest.Test(t, func(t *testing.T) {
		w := startWorld(t, folder)
		defer w.Stop()
		if err := w.nodes[1].kill(); err != nil {
			t.Fatal(err)
		}
		w.running.Go(func() {
			w.strike(faults.Fault{Kind: faults.WallClockFarAhead, Part: faults.World, Instance: -1, For: 4 * time.Second})
		})
		time.Sleep(2 * time.Second)
		for i, n := range w.nodes {
			if ahead := n.wall.now().Sub(w.wall.now()); ahead != farAhead {
				t.Errorf("the wall clock of machine %d is %v ahead, want %v", i, ahead, farAhead)
			}
			if got, want := w.Wall(i), w.wall.now(); !got.Equal(want) {
				t.Errorf("instance %d: got %v, want %v", i, got, want)
			}
		}
	})
}

// startWorld starts a world and lets its instances run for a moment.
func startWorld(t *testing.T, folder string) *World {
	t.Helper()
	w, err := NewWorld(folder, time.Date(2026, 1, 5, 8, 0, 0, 0, time.UTC), slog.New(slog.DiscardHandler))
	if err != nil {
		t.Fatal(err)
	}
	w.people = customers.New(w, 1, nil)
	w.Start()
	time.Sleep(5 * time.Second)
	return w
}
