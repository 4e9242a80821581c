package meili_test

import (
	"testing"

	"lieudit/eventstore/sqldb"
	"lieudit/queries/locations/meili"
	"lieudit/queries/locations/meili/meilitest"
	"lieudit/queries/locations/search"
	"lieudit/queries/locations/search/searchtest"
	"lieudit/schemas/table"
)

const generation = "test"

// fixture is a read model that is written by the test itself, and an index that is told of it.
type fixture struct {
	t        testing.TB
	server   meili.Server
	index    *meili.Index
	shelf    *sqldb.Registry
	copy     sqldb.Generation
	position int64
}

func open(t testing.TB) *fixture {
	t.Helper()
	shelf, err := sqldb.OpenRegistry(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { shelf.Close() })
	s := &fixture{t: t, server: meilitest.Server(t), shelf: shelf}
	s.index = meili.New(s.server, shelf)
	if s.copy, err = shelf.BuildGeneration(t.Context(), table.LocationsModel, false); err != nil {
		t.Fatal(err)
	}
	if err := shelf.PromoteGeneration(t.Context(), table.LocationsModel, s.copy); err != nil {
		t.Fatal(err)
	}
	if _, err := s.index.Open(t.Context()); err != nil {
		t.Fatal(err)
	}
	if err := s.index.SaveProgress(t.Context(), meili.Batch{Generation: generation}); err != nil {
		t.Fatal(err)
	}
	return s
}

// write writes rows to the read model alone.
func (s *fixture) write(rows ...table.Site) {
	s.t.Helper()
	s.position++
	for i := range rows {
		rows[i].Position = s.position
	}
	db, release, err := s.shelf.OpenGeneration(s.t.Context(), s.copy)
	if err != nil {
		s.t.Fatal(err)
	}
	defer release()
	err = db.RunInTx(s.t.Context(), func(tx *sqldb.Tx) error { return sqldb.Upsert(s.t.Context(), tx, table.Sites, rows) })
	if err != nil {
		s.t.Fatal(err)
	}
}

// applyBatch tells the index alone.
func (s *fixture) applyBatch(rows ...table.Site) {
	s.t.Helper()
	if err := s.index.ApplyBatch(s.t.Context(), meili.Batch{Generation: generation, Position: s.position, Sites: rows}); err != nil {
		s.t.Fatal(err)
	}
}

func (s *fixture) WriteSites(_ *testing.T, rows ...table.Site) {
	s.t.Helper()
	s.write(rows...)
	s.applyBatch(rows...)
}

func (s *fixture) Engine() search.Engine { return s.index }

func TestContract(t *testing.T) {
	t.Parallel()
	searchtest.Run(t, func(t *testing.T) searchtest.Fixture { return open(t) })
}
