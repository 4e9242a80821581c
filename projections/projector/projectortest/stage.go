package projectortest

import (
	"context"
	"strings"
	"testing"
	"time"

	"lieudit/eventstore"
	"lieudit/projections/projector"
	"lieudit/schemas/event"
	"lieudit/schemas/table"
)

// Stage is read models being filled from a log of their own.
type Stage struct {
	Log   eventstore.Store
	Vault *Vault
	Codec *eventstore.Codec
	Shelf *table.Shelf

	t         testing.TB
	projector *projector.Projector
	end       eventstore.Position
	stop      func()
}

// patience is how long anything may take.
const patience = time.Minute

// Start fills models at an address until the test ends.
func Start(t testing.TB, address string, models ...projector.Model) *Stage {
	t.Helper()
	shelf, err := table.OpenShelf(address)
	if err != nil {
		t.Fatal(err)
	}
	s := &Stage{Log: Journal(t), Vault: &Vault{}, Shelf: shelf, t: t, stop: func() {}}
	s.Codec = eventstore.NewCodec(s.Vault)
	s.Restart(models...)
	t.Cleanup(func() {
		s.stop()
		if err := shelf.Close(); err != nil {
			t.Error(err)
		}
	})
	return s
}

// Restart ends the filling, wherever it is, and begins it again.
func (s *Stage) Restart(models ...projector.Model) {
	s.stop()
	s.projector = projector.New(s.Log, s.Codec, s.Shelf, models...)
	ctx, stop := context.WithCancel(context.Background())
	ended := make(chan error, 1)
	go func() { ended <- s.projector.Run(ctx) }()
	s.stop = func() {
		stop()
		if err := <-ended; err != nil {
			s.t.Error(err)
		}
	}
}

// Append adds events to a stream in one append.
func (s *Stage) Append(stream string, events ...event.Event) {
	s.t.Helper()
	s.end = Append(s.t, s.Log, s.Codec, stream, events...)
}

// Rebuild makes a fresh copy of a model and waits until it serves.
func (s *Stage) Rebuild(m table.Model) {
	s.t.Helper()
	name, err := s.projector.Rebuild(s.t.Context(), m.Name)
	if err != nil {
		s.t.Fatal(err)
	}
	s.until(func() bool {
		c, err := s.Shelf.Reads(s.t.Context(), m)
		return err == nil && c.Name == name
	})
}

// Rows are all rows of a table once it holds everything that was appended, in the order of the key.
func Rows[R any](s *Stage, m table.Model, t table.Table[R]) (rows []R) {
	s.t.Helper()
	s.until(func() bool { return s.projector.Wait(s.t.Context(), s.end, m.Name) == nil })
	key := make([]string, t.Key)
	for i := range key {
		key[i] = t.Columns[i].Name
	}
	err := s.Shelf.Read(s.t.Context(), m, func(db *table.DB) (err error) {
		rows, err = table.Select(s.t.Context(), db, t, "order by "+strings.Join(key, ", "))
		return err
	})
	if err != nil {
		s.t.Fatal(err)
	}
	return rows
}

func (s *Stage) until(reached func() bool) {
	s.t.Helper()
	for deadline := time.Now().Add(patience); !reached(); time.Sleep(5 * time.Millisecond) {
		if time.Now().After(deadline) {
			s.t.Fatal("the read models never got there")
		}
	}
}
