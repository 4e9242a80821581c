package meili_test

import (
	"testing"

	"lieudit/queries/places/finder"
	"lieudit/queries/places/finder/findertest"
	"lieudit/queries/places/meili"
	"lieudit/queries/places/meili/meilitest"
	"lieudit/schemas/table"
)

const fill = "test"

// stage is a read model that is written by the test itself, and an index that is told of it.
type stage struct {
	t        testing.TB
	server   meili.Server
	index    *meili.Index
	shelf    *table.Shelf
	copy     table.Copy
	position int64
}

func open(t testing.TB) *stage {
	t.Helper()
	shelf, err := table.OpenShelf(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { shelf.Close() })
	s := &stage{t: t, server: meilitest.Server(t), shelf: shelf}
	s.index = meili.New(s.server, shelf)
	if s.copy, err = shelf.Build(t.Context(), table.Places, false); err != nil {
		t.Fatal(err)
	}
	if err := shelf.Serve(t.Context(), table.Places, s.copy); err != nil {
		t.Fatal(err)
	}
	if _, err := s.index.Open(t.Context()); err != nil {
		t.Fatal(err)
	}
	if err := s.index.Seal(t.Context(), meili.Batch{Fill: fill}); err != nil {
		t.Fatal(err)
	}
	return s
}

// write writes rows to the read model alone.
func (s *stage) write(rows ...table.Site) {
	s.t.Helper()
	s.position++
	for i := range rows {
		rows[i].Position = s.position
	}
	db, release, err := s.shelf.Use(s.t.Context(), s.copy)
	if err != nil {
		s.t.Fatal(err)
	}
	defer release()
	err = db.Tx(s.t.Context(), func(tx *table.Tx) error { return table.Upsert(s.t.Context(), tx, table.Sites, rows) })
	if err != nil {
		s.t.Fatal(err)
	}
}

// tell tells the index alone.
func (s *stage) tell(rows ...table.Site) {
	s.t.Helper()
	if err := s.index.Tell(s.t.Context(), meili.Batch{Fill: fill, Position: s.position, Sites: rows}); err != nil {
		s.t.Fatal(err)
	}
}

func (s *stage) Put(_ *testing.T, rows ...table.Site) {
	s.t.Helper()
	s.write(rows...)
	s.tell(rows...)
}

func (s *stage) Engine() finder.Engine { return s.index }

func TestContract(t *testing.T) {
	t.Parallel()
	findertest.Run(t, func(t *testing.T) findertest.Stage { return open(t) })
}
