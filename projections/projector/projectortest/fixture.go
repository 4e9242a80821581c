package projectortest

import (
	"bytes"
	"context"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"lieudit/eventstore"
	"lieudit/eventstore/deadlinetest"
	"lieudit/eventstore/sqldb"
	"lieudit/projections/projector"
	"lieudit/schemas/event"
	"lieudit/schemas/table"
)

// Fixture is a set of read models filled from a log of their own. Its methods fail the test instead of returning an error.
// Only one goroutine may use it.
type Fixture struct {
	Log      eventstore.Store
	Vault    *Vault
	Codec    *eventstore.Codec
	Registry *sqldb.Registry

	t            testing.TB
	projector    *projector.Projector
	lastPosition eventstore.Position // of the latest append
	stop         func()              // stops the projector and waits for its end
}

// Start fills models in a database until the test ends. address is one of sqldb.OpenRegistry. The models' tables are created
// as in the program, in the background: Rows waits for them.
func Start(t testing.TB, address string, models ...projector.Model) *Fixture {
	t.Helper()
	registry, err := sqldb.OpenRegistry(address)
	if err != nil {
		t.Fatal(err)
	}
	s := &Fixture{Log: OpenJournal(t), Vault: &Vault{}, Registry: registry, t: t, stop: func() {}}
	s.Codec = eventstore.NewCodec(s.Vault)
	s.Restart(models...)
	t.Cleanup(func() {
		s.stop()
		if err := registry.Close(); err != nil {
			t.Error(err)
		}
	})
	return s
}

// Restart stops the projector, wherever it is, and starts a new one on the same log and database, perhaps with other models.
func (s *Fixture) Restart(models ...projector.Model) {
	s.stop()
	s.projector = projector.New(s.Log, s.Codec, s.Registry, models...)
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

// Append appends events to a stream in one append. The next call of Rows waits for them.
func (s *Fixture) Append(stream string, events ...event.Event) {
	s.t.Helper()
	s.lastPosition = Append(s.t, s.Log, s.Codec, stream, events...)
}

// Rebuild makes a fresh generation of a model, and waits until it serves. The new generation is filled from the first
// event on.
func (s *Fixture) Rebuild(m table.ReadModel) {
	s.t.Helper()
	name, err := s.projector.Rebuild(s.t.Context(), m.Name)
	if err != nil {
		s.t.Fatal(err)
	}
	s.await(func() bool {
		c, err := s.Registry.ServingGeneration(s.t.Context(), m)
		return err == nil && c.Name == name
	})
}

// ServingGeneration returns the name of the generation of a model that serves.
func (s *Fixture) ServingGeneration(m table.ReadModel) string {
	s.t.Helper()
	g, err := s.Registry.ServingGeneration(s.t.Context(), m)
	if err != nil {
		s.t.Fatal(err)
	}
	return g.Name
}

// AwaitOtherGeneration waits until a generation of another name serves.
func (s *Fixture) AwaitOtherGeneration(m table.ReadModel, name string) {
	s.t.Helper()
	s.await(func() bool {
		g, err := s.Registry.ServingGeneration(s.t.Context(), m)
		return err == nil && g.Name != name
	})
}

// Refold requests a refold of accounts.
func (s *Fixture) Refold(accounts ...string) {
	s.t.Helper()
	if err := s.projector.Refold(s.t.Context(), accounts...); err != nil {
		s.t.Fatal(err)
	}
}

// Incidents returns what is wrong with accounts.
func (s *Fixture) Incidents() error { return s.projector.Incidents(s.t.Context()) }

// Rows returns all rows of a table in the order of their key, once they hold everything that was appended by Append and
// Sync. t must be one of m's tables.
func Rows[R any](s *Fixture, m table.ReadModel, t table.Table[R]) (rows []R) {
	s.t.Helper()
	s.await(func() bool { return s.projector.AwaitPosition(s.t.Context(), s.lastPosition, m.Name) == nil })
	key := make([]string, t.KeyColumns)
	for i := range key {
		key[i] = t.Columns[i].Name
	}
	err := s.Registry.Read(s.t.Context(), m, func(db *sqldb.DB) (err error) {
		rows, err = sqldb.Select(s.t.Context(), db, t, "order by "+strings.Join(key, ", "))
		return err
	})
	if err != nil {
		s.t.Fatal(err)
	}
	return rows
}

// await waits for a condition, and fails the test if it takes longer than anything in a test may (deadlinetest.DefaultLimit).
func (s *Fixture) await(reached func() bool) {
	s.t.Helper()
	deadlinetest.WaitUntil(s.t, deadlinetest.DefaultLimit, "the read models hold what was appended", reached)
}

// FolderContains reports whether a file of a folder contains a text. It does not look into subfolders. Tests of erasures use
// it to look for a personal text in the files of a SQLite database.
func FolderContains(t testing.TB, folder, text string) bool {
	t.Helper()
	files, err := filepath.Glob(filepath.Join(folder, "*"))
	if err != nil || len(files) == 0 {
		t.Fatalf("%d files, %v", len(files), err)
	}
	found := false
	for _, f := range files {
		data, err := os.ReadFile(f)
		if err != nil {
			t.Fatal(err)
		}
		found = found || bytes.Contains(data, []byte(text))
	}
	return found
}
