package simulation

import (
	"log/slog"
	"net/http"
	"os"
	"testing"
	"testing/synctest"
	"time"

	"lieudit/cmd/bench/simulation/customers"
)

// newFolder makes a folder in memory, where the machine has one.
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
